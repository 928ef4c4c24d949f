// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/environ"
)

const (
	// described is how many survivors get their command line read. The others are
	// counted and named.
	described = 20
	// mostMembers bounds one look at a tree, which may grow while it is looked at.
	mostMembers = 1 << 15
	// killBound is how long a tree is hunted that has no namespace of its own. A
	// round takes less than a millisecond for a few processes, so one that is still
	// there after it outgrows every round.
	killBound = 10 * time.Second
)

// A member is one process of a tree. Its number and the moment of its start name
// a process for ever: the number alone may be used again.
type member struct {
	pid    int
	parent int
	start  uint64 // clock ticks since the machine was started
	name   string
	ended  bool // nothing runs any more: it only waits to be collected
	// stopped says that a signal has stopped its first thread.
	stopped bool
}

// readMember reads what the kernel says of a process (proc_pid_stat(5)), with buf as
// scratch.
func readMember(pid int, buf []byte) (member, bool) {
	b := readInto(fmt.Sprintf("/proc/%d/stat", pid), buf)
	// The name in parentheses may hold anything; the rest follows the last one.
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from {
		return member{}, false
	}
	m := member{pid: pid, name: string(b[from+1 : to])}
	const state, parent, threads, start = 0, 1, 17, 19 // counted behind the name
	at := 0
	for field := range bytes.FieldsSeq(b[to+1:]) {
		switch at {
		case state:
			m.ended = field[0] == 'Z' || field[0] == 'X'
			m.stopped = field[0] == 'T'
		case parent:
			m.parent, _ = strconv.Atoi(string(field))
		case threads:
			// The first thread may have ended while others go on: then the process
			// looks like one that has ended, and runs.
			if n, err := strconv.Atoi(string(field)); err == nil && n > 1 {
				m.ended = false
			}
		case start:
			var err error
			m.start, err = strconv.ParseUint(string(field), 10, 64)
			return m, err == nil
		}
		at++
	}
	return member{}, false
}

// readInto reads the beginning of a file as far as buf goes; nil when it cannot be
// read.
func readInto(name string, buf []byte) []byte {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n := 0
	for n < len(buf) {
		k, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || k <= 0 {
			break
		}
		n += k
	}
	return buf[:n]
}

// A census is one walk through a tree.
type census struct {
	buf  []byte
	seen map[int]bool
	out  []member
}

// membersBelow lists the processes below root that run, nearest first. The lists
// of the kernel may miss one while others end (proc_tid_children(5)), so whoever
// must have all of them looks again.
func membersBelow(root int) []member {
	w := census{buf: make([]byte, 1<<16), seen: map[int]bool{root: true}}
	first, ok := readMember(root, w.buf)
	if !ok {
		return nil
	}
	for queue := []member{first}; len(queue) > 0 && len(w.seen) < mostMembers; queue = queue[1:] {
		queue = append(queue, w.children(queue[0])...)
	}
	return w.out
}

// children are the children of one member, those too that have ended: their own
// may run, as long as nobody has inherited them.
func (w *census) children(of member) []member {
	var numbers []int
	for _, task := range tasks(of.pid) {
		for word := range bytes.FieldsSeq(readInto(fmt.Sprintf("/proc/%d/task/%d/children", of.pid, task), w.buf)) {
			if pid, err := strconv.Atoi(string(word)); err == nil && !w.seen[pid] {
				numbers = append(numbers, pid)
			}
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	if now, ok := readMember(of.pid, w.buf); !ok || now.start != of.start {
		return nil // the number was used again: these may be anybody's
	}
	var out []member
	for _, pid := range numbers {
		if m, ok := readMember(pid, w.buf); ok {
			w.seen[pid] = true
			out = append(out, m)
			if !m.ended {
				w.out = append(w.out, m)
			}
		}
	}
	return out
}

// tasks are the threads of a process.
func tasks(pid int) []int {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/task", pid), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var out []int
	for buf := make([]byte, 4096); ; {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return out
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if tid, err := strconv.Atoi(name); err == nil {
				out = append(out, tid)
			}
		}
	}
}

// signal sends a signal to exactly the process that was listed: the handle is
// taken before the second look, so it is that of the process which is seen there.
func (m member) signal(sig syscall.Signal, buf []byte) {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := readMember(m.pid, buf); ok && now.start == m.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may have ended by now
	}
}

// signalBelow signals every process below root and returns how many there were.
func signalBelow(root int, sig syscall.Signal) int {
	found := membersBelow(root)
	buf := make([]byte, 1024)
	for _, m := range found {
		m.signal(sig, buf)
	}
	return len(found)
}

// descendants are the numbers of the processes below root that run.
func descendants(root int) []int {
	var out []int
	for _, m := range membersBelow(root) {
		out = append(out, m.pid)
	}
	return out
}

// errOutgrown is the end of a hunt that found something in every round.
var errOutgrown = errors.New("confine: processes of the command start others faster than they can be ended")

// hunt kills what is below the reaper until nothing is left. Every process that a
// round finds is dead after it, so only what was started during the round is there
// for the next one; and a group, or a control group, is killed as a whole, without a
// gap. Before the command's own end is known only its rounds can tell.
func (c *child) hunt() error {
	const soon = time.Millisecond
	end := time.Now().Add(killBound)
	buf := make([]byte, 1024)
	c.proc.WhileThere(func() {
		if reaper, ok := readMember(c.PID(), buf); ok {
			reaper.signal(unix.SIGCONT, buf) // the command may have stopped it
		}
	})
	for {
		var found int
		var gone bool
		there := c.proc.WhileThere(func() {
			found, gone = signalBelow(c.PID(), unix.SIGKILL), reaperGone(c.PID())
		})
		switch {
		case !there:
			return nil // nobody can say any more who belongs to it
		case c.commandEnded.Load() && c.proc.Empty(soon):
			return nil
		case found == 0 && (!c.commandEnded.Load() || gone):
			return nil
		case time.Now().After(end):
			c.mu.Lock()
			c.outgrown = errOutgrown
			c.mu.Unlock()
			return errOutgrown
		}
	}
}

// reaperGone reports whether the root of a tree has ended, so that nobody can say
// any more who belongs to it. It has not been collected.
func reaperGone(pid int) bool {
	m, ok := readMember(pid, make([]byte, 1024))
	return !ok || m.ended
}

// survivorsBelow names who is left below root.
func survivorsBelow(root int) []executor.Survivor {
	var out []executor.Survivor
	for i, m := range membersBelow(root) {
		s := executor.Survivor{PID: m.pid, Name: m.name}
		if i < described {
			s.Command = commandOf(m)
		}
		out = append(out, s)
	}
	return out
}

// commandOf is the command line of a process. Of one that has none, because it is
// about to execute a program or to end, it is the name in brackets, as ps(1) has it.
func commandOf(m member) string {
	const most = 4096 // far more than is shown
	buf := make([]byte, most)
	b := readInto(fmt.Sprintf("/proc/%d/cmdline", m.pid), buf)
	if len(b) == 0 { // the first thread may have ended
		for _, task := range tasks(m.pid) {
			if b = readInto(fmt.Sprintf("/proc/%d/task/%d/cmdline", m.pid, task), buf); len(b) > 0 {
				break
			}
		}
	}
	args := []string{"[" + m.name + "]"}
	if b = bytes.TrimRight(b, "\x00"); len(b) > 0 {
		args = strings.Split(string(b), "\x00")
	}
	return environ.ShowCommand(args, executor.CommandShown)
}
