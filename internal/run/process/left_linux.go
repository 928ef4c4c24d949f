// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Leftovers is a directory with a file for each command that runs, for who comes after this process. A
// command ends with this process, because its reaper kills its tree then; what is left where that was killed
// as well is found by the session of the reaper and the control group of the command. Nil records nothing.
type Leftovers struct {
	root *os.Root
	lock *os.File
	boot string
}

// lockName is the file that a process locks which uses a directory.
const lockName = "lock"

// groupPrefix begins the names of control groups that are for one command each.
const groupPrefix = "sallyport-"

// OpenLeftovers opens a directory, which is made with mode 0700, and ends what commands have left whose
// process has ended without Close. It blocks until that has ended, at most 10 seconds; else the error is
// ErrOutgrown. It is an error that another process uses the directory.
func OpenLeftovers(dir string) (l *Leftovers, err error) {
	l = new(Leftovers)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cannot use the record of commands: %w", err), l.Close())
			l = nil
		}
	}()
	if l.root, err = safefile.MakeDirs(dir); err != nil {
		return l, err
	}
	if l.lock, err = l.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return l, err
	}
	if err = safefile.Lock(l.lock, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return l, errors.New("another process uses " + dir + "; end it first")
	} else if err != nil {
		return l, err
	}
	boot, err := safefile.ReadSystem("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return l, err
	}
	l.boot = string(boot)
	return l, l.end()
}

// Add records the process at the root of the tree of a command, until done is called. What cannot be recorded
// is not: its reaper ends it.
func (l *Leftovers) Add(pid int) (done func()) {
	if l == nil {
		return func() {}
	}
	m, ok := ReadMember(pid)
	if !ok {
		return func() {}
	}
	name := fmt.Sprintf("%d-%d", pid, m.start)
	f, err := l.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return func() {}
	}
	_, _ = f.WriteString(l.boot + ownGroups(pid))
	_ = f.Close() // as above
	return func() { _ = l.root.Remove(name) }
}

// Dir is the directory, absolute where that which was opened is; empty for nil.
func (l *Leftovers) Dir() string {
	if l == nil {
		return ""
	}
	return l.root.Name()
}

// Close has others use the directory.
func (l *Leftovers) Close() error {
	if l == nil {
		return nil
	}
	var err error
	if l.lock != nil {
		err = l.lock.Close()
	}
	if l.root != nil {
		err = errors.Join(err, l.root.Close())
	}
	return err
}

// ownGroups returns the lines of the control groups of a process that are for one command, each with a line
// feed.
func ownGroups(pid int) string {
	text, _ := safefile.ReadSystem(fmt.Sprintf("/proc/%d/cgroup", pid)) // it may have ended
	var own strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(path.Base(line), groupPrefix) {
			own.WriteString(line)
		}
	}
	return own.String()
}

// end ends what is left of the commands that are recorded.
func (l *Leftovers) end() error {
	dir, err := l.root.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	limit := time.Now().Add(killLimit)
	for _, name := range names {
		var r leftover
		if _, err := fmt.Sscanf(name, "%d-%d", &r.pid, &r.start); err != nil || r.pid <= 1 {
			continue // the lock
		}
		text, err := l.root.ReadFile(name)
		if err != nil {
			return err
		}
		boot, groups, _ := strings.Cut(string(text), "\n")
		if boot+"\n" == l.boot {
			r.groups = groups
			if err := r.kill(limit); err != nil {
				return err
			}
		}
		if err := l.root.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// A leftover is a command that was recorded.
type leftover struct {
	pid    int // of its reaper, which made the session
	start  uint64
	groups string // lines
}

// kill kills what is left in rounds, until nothing is. The reaper is the last of its tree: it collects
// orphans.
func (r *leftover) kill(limit time.Time) error {
	for {
		var left []Member
		m, ok := ReadMember(r.pid)
		if reaps := ok && m.start == r.start; reaps {
			if left = Below(r.pid); len(left) == 0 && !m.Ended {
				left = []Member{m}
			}
		}
		left = append(left, r.orphans()...)
		if len(left) == 0 {
			return nil
		}
		for _, m := range left {
			if !m.end(limit) {
				return fmt.Errorf("process %d (%s) of a command that was left does not end: %w", m.PID, m.Name,
					ErrOutgrown)
			}
		}
	}
}

// orphans returns the processes that are in the session of the reaper, or in a group of the command. A
// session has the number of its leader, which is not given to another process while it exists: one with
// another start is the leader of another session.
func (r *leftover) orphans() (left []Member) {
	leader, there := ReadMember(r.pid)
	other := there && leader.start != r.start
	for _, pid := range tasksIn("/proc") {
		m, ok := ReadMember(pid)
		if !ok || m.Ended || m.start < r.start || pid == r.pid {
			continue
		}
		if m.session == r.pid && !other || r.groups != "" && ownGroups(pid) == r.groups {
			left = append(left, m)
		}
	}
	return left
}

// tasksIn returns the numbers of processes in /proc.
func tasksIn(proc string) (pids []int) {
	f, err := os.Open(proc)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // some end meanwhile
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// end kills exactly the process that was read and waits for its end, and reports whether it has ended.
func (m Member) end(limit time.Time) bool {
	fd, err := unix.PidfdOpen(m.PID, 0)
	if err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	defer unix.Close(fd)
	if now, ok := ReadMember(m.PID); !ok || now.start != m.start {
		return true
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	for {
		left := time.Until(limit)
		if left <= 0 {
			return false
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}
