// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// A call that the supervisor makes would be its own for all who ask the kernel who made it. So messages
// carry the credentials of the task wherever a receiver may have asked for them. Nothing of this decides
// about a call.

// Ways to send as another process.
const (
	speakUnknown int32 = iota
	speakOwn           // this process has the right
	speakInside        // a task in the process namespace of the command has it
	speakNot
)

// A voice is how a supervisor sends as the tasks.
type voice struct {
	mu        sync.Mutex
	how       atomic.Int32
	user, pid int // namespaces of the sandbox, where a task in them sends
	level     int // how many process namespaces are around the sandbox's
}

// processes returns the numbers of the task's process, from those of this process's namespace to those of
// its own; nil when it has ended.
func (r *request) processes() []string { return strings.Fields(r.status("NStgid:")) }

// ownLevel returns how many process namespaces are around that of a sandbox.
func (s *Supervisor) ownLevel() int {
	r := request{Supervisor: s}
	r.n.PID = uint32(os.Getpid())
	return len(r.processes())
}

// asks notes that a receiver asks for credentials.
func (s *Supervisor) asks() {
	s.asked.Store(true)
	if s.cfg.Peers != nil {
		s.cfg.Peers.asked.Store(true)
	}
}

// isAsked reports whether a receiver may ask for credentials. The sockets of others who have their network in
// common with the command may, too.
func (s *Supervisor) isAsked() bool {
	return s.asked.Load() || s.cfg.Peers != nil && s.cfg.Peers.asked.Load()
}

// credentials returns those of the task, as which alone it may name itself. Nil leaves it to the kernel,
// which fills in those of this process for receivers that ask.
func (c *connecting) credentials(named *unix.Ucred) (*unix.Ucred, syscall.Errno) {
	if c.domain != unix.AF_UNIX || named == nil && !c.isAsked() {
		return nil, 0
	}
	own := unix.Ucred{Uid: uint32(unix.Geteuid()), Gid: uint32(unix.Getegid())}
	ids := c.processes()
	if len(ids) == 0 {
		return nil, unix.EINTR // it has ended
	}
	if named != nil && (ids[len(ids)-1] != strconv.Itoa(int(named.Pid)) ||
		named.Uid != own.Uid || named.Gid != own.Gid) {
		return nil, unix.EPERM
	}
	pid := ""
	switch v := &c.voice; c.speak(ids) {
	case speakOwn:
		pid = ids[0]
	case speakInside:
		pid = ids[v.level]
	}
	n, err := strconv.Atoi(pid)
	if err != nil {
		return nil, 0 // the kernel's own answer is the next best
	}
	own.Pid = int32(n)
	return &own, 0
}

// transmitAs makes a sendmsg(2), as a process of the sandbox where the message says who sends.
func (c *connecting) transmitAs(h *unix.Msghdr, flags int) (int, syscall.Errno, bool) {
	if c.voice.how.Load() != speakInside {
		return 0, 0, false
	}
	n, errno, err := launch.SendInside(c.voice.user, c.voice.pid, c.sock, h, flags)
	if err != nil {
		return 0, unix.ENOBUFS, true
	}
	return n, errno, true
}

// speak returns how to send as a task with these numbers. It is found out once.
func (c *connecting) speak(ids []string) int32 {
	v := &c.voice
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.how.Load() == speakUnknown && c.valid() {
		v.how.Store(c.findVoice(ids))
	}
	if how := v.how.Load(); how != speakInside || len(ids) > v.level {
		return how
	}
	return speakNot
}

func (c *connecting) findVoice(ids []string) int32 {
	v := &c.voice
	if v.level = c.ownLevel(); v.level == 0 {
		return speakNot
	}
	if tasks.MaySpeak(ids[0]) {
		return speakOwn
	}
	if len(ids) <= v.level {
		return speakNot // no process namespace of its own
	}
	var ok bool
	if v.user, v.pid, ok = c.sandboxSpaces(len(ids) - 1 - v.level); !ok {
		return speakNot
	}
	_, errno, err := launch.SendInside(v.user, v.pid, -1, new(unix.Msghdr), 0)
	if err != nil || errno != unix.EBADF {
		unix.Close(v.user)
		unix.Close(v.pid)
		return speakNot
	}
	return speakInside
}

// sandboxSpaces opens the process namespace of the sandbox, so many above that of the task, and its
// user namespace. The caller closes both.
func (r *request) sandboxSpaces(above int) (user, pid int, ok bool) {
	pid, err := unix.Openat(r.proc, strconv.Itoa(int(r.n.PID))+"/ns/pid", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, false
	}
	for ; above > 0 && err == nil; above-- {
		var parent int
		if parent, err = tasks.RelatedSpace(pid, tasks.NSParent); err == nil {
			unix.Close(pid)
			pid = parent
		}
	}
	if err == nil && r.valid() {
		if user, ok = tasks.OwnerOf(pid); ok {
			return user, pid, true
		}
	}
	unix.Close(pid)
	return -1, -1, false
}
