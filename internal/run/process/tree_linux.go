// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
)

const (
	// commandsShown is how many survivors have their command line read. The others are
	// only counted and named.
	commandsShown = 20
	// maxMembers bounds one walk through a tree, which may grow meanwhile.
	maxMembers = 1 << 15
	// killLimit is how long a tree without a process namespace is killed in rounds. A
	// round takes less than a millisecond for a few processes, so a tree that is left
	// after killLimit grows faster than it can be killed.
	killLimit = 10 * time.Second
)

// A Member is one process of a tree. A PID may be reused; PID and start time together
// identify one process.
type Member struct {
	PID    int
	Parent int
	Name   string
	Ended  bool   // it is a zombie: it only waits to be collected
	start  uint64 // in clock ticks since boot

	session int
}

// ReadMember reads what the kernel says of a process (proc_pid_stat(5)); false when
// there is no such process.
func ReadMember(pid int) (Member, bool) {
	var buf [1024]byte
	b := readInto(fmt.Sprintf("/proc/%d/stat", pid), buf[:])
	// The name in parentheses may hold any byte; the other fields follow the last one.
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from {
		return Member{}, false
	}
	fields := bytes.Fields(b[to+1:])
	const state, parent, session, threads, start = 0, 1, 3, 17, 19
	if len(fields) <= start {
		return Member{}, false
	}
	m := Member{PID: pid, Name: string(b[from+1 : to])}
	m.Parent, _ = strconv.Atoi(string(fields[parent]))
	m.session, _ = strconv.Atoi(string(fields[session]))
	// The state is that of the first thread, which may have ended while others run.
	n, err := strconv.Atoi(string(fields[threads]))
	m.Ended = (fields[state][0] == 'Z' || fields[state][0] == 'X') && (err != nil || n <= 1)
	m.start, err = strconv.ParseUint(string(fields[start]), 10, 64)
	return m, err == nil
}

// readInto reads a file as far as buf goes; nil when it cannot be read.
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
	root int
	seen map[int]bool
	buf  []byte
}

// Below returns the running processes below root, nearest first. The lists of the
// kernel may miss one while others end (proc_tid_children(5)), so a caller that needs
// all of them looks again.
func Below(root int) []Member {
	first, ok := ReadMember(root)
	if !ok {
		return nil
	}
	var out []Member
	c := census{root: root, seen: map[int]bool{root: true}, buf: make([]byte, 1<<16)}
	for queue := []Member{first}; len(queue) > 0 && len(c.seen) < maxMembers; queue = queue[1:] {
		for _, m := range c.children(queue[0]) {
			queue = append(queue, m) // one that has ended may have children for a moment
			if !m.Ended {
				out = append(out, m)
			}
		}
	}
	return out
}

// children returns the children of a process that were not seen before.
func (c *census) children(of Member) []Member {
	var pids []int
	for _, task := range tasks(of.PID) {
		for number := range bytes.FieldsSeq(readInto(fmt.Sprintf("/proc/%d/task/%s/children", of.PID,
			task), c.buf)) {
			if pid, err := strconv.Atoi(string(number)); err == nil && !c.seen[pid] {
				pids = append(pids, pid)
			}
		}
	}
	if len(pids) == 0 {
		return nil
	}
	if now, ok := ReadMember(of.PID); !ok || now.start != of.start {
		return nil // the PID was reused: these are children of another process
	}
	var out []Member
	for _, pid := range pids {
		m, ok := ReadMember(pid)
		// The PID of a child may have been reused too, but not for one of this parent, nor
		// for one that was orphaned meanwhile.
		if ok && (m.Parent == of.PID || m.Parent == c.root) {
			c.seen[pid] = true
			out = append(out, m)
		}
	}
	return out
}

// tasks returns the threads of a process.
func tasks(pid int) []string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // that the process has ended meanwhile is no error
	return names
}

// Signal signals exactly the process that was read: it takes the handle before it
// compares the start time, so that the PID cannot be reused in between.
func (m Member) Signal(sig syscall.Signal) {
	fd, err := unix.PidfdOpen(m.PID, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := ReadMember(m.PID); ok && now.start == m.start {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may have ended by now
	}
}

// SignalBelow signals every process below root and returns how many there were.
func SignalBelow(root int, sig syscall.Signal) int {
	found := Below(root)
	for _, m := range found {
		m.Signal(sig)
	}
	return len(found)
}

// PIDsBelow returns the PIDs of the running processes below root.
func PIDsBelow(root int) []int {
	var out []int
	for _, m := range Below(root) {
		out = append(out, m.PID)
	}
	return out
}

// A Reaper is the root of a tree, to which every orphan of the tree is reparented.
type Reaper interface {
	PID() int
	// WhileThere calls f while the reaper cannot be collected, so that its PID is not
	// reused. It returns false without a call when the reaper has been collected.
	WhileThere(f func()) bool
	// Empty reports whether the reaper has told that nothing is left below it. It waits
	// for that for at most d.
	Empty(d time.Duration) bool
}

// ErrOutgrown is the error for a tree that grows faster than it can be killed.
var ErrOutgrown = errors.New("processes of the command start others faster than they can be killed")

// KillBelow kills what is below a reaper in rounds, until nothing is left. A round kills
// every process that it finds, so the next round finds only what was started during
// it. While the command has not ended the reaper tells nothing, and a round that finds
// nothing is the last.
func KillBelow(r Reaper, commandEnded func() bool) error {
	const patience = time.Millisecond
	end := time.Now().Add(killLimit)
	r.WhileThere(func() {
		if m, ok := ReadMember(r.PID()); ok {
			m.Signal(unix.SIGCONT) // the command may have stopped it
		}
	})
	for {
		found, gone := 0, false
		there := r.WhileThere(func() {
			found = SignalBelow(r.PID(), unix.SIGKILL)
			m, ok := ReadMember(r.PID())
			gone = !ok || m.Ended
		})
		switch {
		case !there:
			return nil // nothing tells any more which processes belong to the tree
		case commandEnded() && r.Empty(patience):
			return nil
		case found == 0 && (!commandEnded() || gone):
			return nil
		case time.Now().After(end):
			return ErrOutgrown
		}
	}
}

// SurvivorsBelow describes the running processes below root.
func SurvivorsBelow(root int) []executor.Survivor {
	var out []executor.Survivor
	for i, m := range Below(root) {
		s := executor.Survivor{PID: m.PID, Name: m.Name}
		if i < commandsShown {
			s.Command = m.Command()
		}
		out = append(out, s)
	}
	return out
}

// Command returns the command line of a process, or its name in brackets when it has
// none, as ps(1) does: it is about to execute a program, or to end.
func (m Member) Command() string {
	buf := make([]byte, 4096) // more than is shown
	b := readInto(fmt.Sprintf("/proc/%d/cmdline", m.PID), buf)
	if len(b) == 0 { // the first thread may have ended
		for _, task := range tasks(m.PID) {
			if b = readInto(fmt.Sprintf("/proc/%d/task/%s/cmdline", m.PID, task), buf); len(b) > 0 {
				break
			}
		}
	}
	args := []string{"[" + m.Name + "]"}
	if b = bytes.TrimRight(b, "\x00"); len(b) > 0 {
		args = strings.Split(string(b), "\x00")
	}
	return environ.ShowCommand(args, executor.CommandShown)
}
