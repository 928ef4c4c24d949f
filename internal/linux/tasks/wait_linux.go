// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A call is a kind of system call. The zero value is one that does not wait for input.
type call int

const (
	callOther   call = iota
	callRead         // descriptor first
	callSplice       // descriptor first, see below
	callPoll         // poll(fds, count, milliseconds)
	callPPoll        // ppoll(fds, count, timespec, mask, size)
	callSelect       // select(n, read, write, except, timeval)
	callPSelect      // pselect6(n, read, write, except, timespec, mask)
	callEpoll        // epoll_wait(epoll, events, count, milliseconds)
	callEpoll2       // epoll_pwait2(epoll, events, count, timespec, mask, size)
	callRestart      // restart_syscall() after a stop, with the registers of the call that goes on
	callForeign      // by a number of unknown meaning
)

// maxDescriptors bounds the descriptors of one call: the size of an fd_set of the C
// library.
const maxDescriptors = 1024

// controlling is the device number of /dev/tty, see Documentation/admin-guide/devices.txt.
var controlling = deviceNumber{major: 5, minor: 0}

// A deviceNumber is the number of a device or of a mounted file system.
type deviceNumber struct{ major, minor uint32 }

// A target is the terminal or the pipe whose reader is searched for.
type target struct {
	pipe   bool
	fs     deviceNumber
	inode  uint64
	device deviceNumber // of a terminal
	// session leads the session whose controlling terminal this is.
	session int
	// readTime is the time after which a read of the terminal ends without input; 0 is never.
	readTime time.Duration
}

// targetOf returns an open descriptor of this process as a target.
func targetOf(fd int) (target, error) {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_INO, &st)
	return target{
		pipe:   st.Mode&unix.S_IFMT == unix.S_IFIFO,
		fs:     deviceNumber{st.Dev_major, st.Dev_minor},
		inode:  st.Ino,
		device: deviceNumber{st.Rdev_major, st.Rdev_minor},
	}, err
}

// A wait is a thread's wait for a target. Without timed it has no end of its own.
type wait struct {
	timed   bool
	timeout time.Duration
}

// short reports whether the wait is a poll of a busy loop.
func (w wait) short() bool { return w.timed && w.timeout < ShortestTimedWait }

// candidate reports whether the thread's call can be a wait for input. The numbers of
// 32-bit programs are not known, so each of their calls can be.
func (t *thread) candidate() bool {
	return t.err == nil && t.call.number >= 0 && (t.call.narrow || callOf(t.call.number) != callOther)
}

// waits reports whether the thread's call is a wait for input from the target. If the
// thread has gone on since the call was read, the result is wrong; the counts tell that.
func (p *process) waits(t *thread, to target) (wait, bool, error) {
	args := t.call.args
	kind := callOf(t.call.number)
	if kind == callForeign || t.call.narrow {
		return wait{}, false, errForeign
	}
	if kind == callRestart {
		// Registers alone cannot tell a poll from a sleep or a lock, but the kernel's function
		// can: select restarts as itself, so a thread that sleeps in their function polls.
		if !pollChannel(p.waitChannel(t.tid)) {
			return wait{}, false, nil
		}
		kind = callPoll
	}
	switch kind {
	case callRead:
		found, err := p.is(t.tid, int64(int32(args[0])), to)
		return wait{timed: to.readTime > 0, timeout: to.readTime}, found, err
	case callSplice:
		// From a pipe it waits for the input first. From a terminal it can also wait for room
		// in the other pipe.
		if !to.pipe {
			return wait{}, false, nil
		}
		found, err := p.is(t.tid, int64(int32(args[0])), to)
		return wait{}, found, err
	case callPoll, callPPoll:
		return p.polls(t, kind, to)
	case callSelect, callPSelect:
		return p.selects(t, kind, to)
	case callEpoll, callEpoll2:
		return p.epolls(t, kind, to)
	}
	return wait{}, false, nil
}

// errForeign says that the numbers of a program's calls are not known.
var errForeign = errors.New("the numbers of its calls are not known")

// pollChannel reports whether the kernel's function is one in which poll sleeps.
func pollChannel(name string) bool {
	for _, prefix := range []string{"poll_schedule_timeout", "do_sys_poll", "do_poll"} {
		if name == prefix || strings.HasPrefix(name, prefix+".") {
			return true
		}
	}
	return false
}

// polls is waits for poll and ppoll.
func (p *process) polls(t *thread, kind call, to target) (wait, bool, error) {
	count := int(uint32(t.call.args[1]))
	memory := make([]byte, min(count, maxDescriptors)*sizeofPollFd)
	if err := p.memory(t.tid, t.call.args[0], memory); err != nil {
		return wait{}, false, err
	}
	found, err := p.among(t.tid, pollDescriptors(memory), to)
	if err != nil || !found {
		return wait{}, false, bounded(err, count)
	}
	if kind == callPoll {
		return milliseconds(t.call.args[2]), true, nil
	}
	w, err := p.timeout(t.tid, t.call.args[2], time.Nanosecond)
	return w, err == nil, err
}

// selects is waits for select and pselect6.
func (p *process) selects(t *thread, kind call, to target) (wait, bool, error) {
	count := int(int32(t.call.args[0]))
	if count <= 0 || t.call.args[1] == 0 {
		return wait{}, false, nil
	}
	words := (min(count, maxDescriptors) + 63) / 64
	memory := make([]byte, words*8)
	if err := p.memory(t.tid, t.call.args[1], memory); err != nil {
		return wait{}, false, err
	}
	found, err := p.among(t.tid, setDescriptors(memory, count), to)
	if err != nil || !found {
		return wait{}, false, bounded(err, count)
	}
	unit := time.Nanosecond
	if kind == callSelect {
		unit = time.Microsecond
	}
	w, err := p.timeout(t.tid, t.call.args[4], unit)
	return w, err == nil, err
}

// epolls is waits for the epoll_wait family.
func (p *process) epolls(t *thread, kind call, to target) (wait, bool, error) {
	set := int(int32(t.call.args[0]))
	text, err := p.text(t.tid, "fdinfo/"+strconv.Itoa(set))
	whole := err == nil
	if err != nil && !errors.Is(err, errBounds) {
		return wait{}, false, err
	}
	members, err := parseEpoll(text)
	if err != nil {
		return wait{}, false, err
	}
	found := false
	for i, member := range members {
		if i == maxDescriptors {
			whole = false
			break
		}
		st, ok, err := p.file(t.tid, member.fd, to)
		if err != nil {
			return wait{}, false, err
		}
		// A number that was closed and given to another file is not the member that was added.
		if ok && (!member.exact || member.inode == st.Ino || !to.itself(st)) {
			found = true
			break
		}
	}
	switch {
	case !found && !whole:
		return wait{}, false, errBounds
	case !found:
		return wait{}, false, nil
	case kind == callEpoll:
		return milliseconds(t.call.args[3]), true, nil
	}
	w, err := p.timeout(t.tid, t.call.args[3], time.Nanosecond)
	return w, err == nil, err
}

// bounded returns errBounds for a set without the target that is larger than the part
// that was read.
func bounded(err error, count int) error {
	if err == nil && count > maxDescriptors {
		return errBounds
	}
	return err
}

// among reports whether one of the descriptors is the target.
func (p *process) among(tid int, fds []int, to target) (bool, error) {
	for _, fd := range fds {
		if found, err := p.is(tid, int64(fd), to); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// is reports whether the descriptor is the target. A negative one is not.
func (p *process) is(tid int, fd int64, to target) (bool, error) {
	if fd < 0 || fd > math.MaxInt32 {
		return false, nil
	}
	_, found, err := p.file(tid, int(fd), to)
	return found, err
}

// file returns the file of a descriptor and whether that is the target. A closed
// descriptor is not.
func (p *process) file(tid, fd int, to target) (unix.Statx_t, bool, error) {
	st, err := p.statx(tid, fd)
	switch {
	case errors.Is(err, errGone):
		return st, false, nil
	case err != nil:
		return st, false, err
	case to.itself(st):
		return st, true, nil
	case to.pipe || st.Mode&unix.S_IFMT != unix.S_IFCHR ||
		deviceNumber{st.Rdev_major, st.Rdev_minor} != controlling:
		return st, false, nil
	}
	// /dev/tty is the terminal of the process that opened it. Numbers of terminals repeat
	// in every devpts file system; the session has only one.
	mine := deviceNumber{unix.Major(uint64(p.leader.terminal)), unix.Minor(uint64(p.leader.terminal))}
	return st, mine == to.device && p.leader.session == to.session && to.session > 0, nil
}

// itself reports whether the file is the target, and not by way of /dev/tty.
func (to target) itself(st unix.Statx_t) bool {
	same := deviceNumber{st.Dev_major, st.Dev_minor} == to.fs && st.Ino == to.inode
	if to.pipe {
		return same && st.Mode&unix.S_IFMT == unix.S_IFIFO
	}
	return same && st.Mode&unix.S_IFMT == unix.S_IFCHR &&
		deviceNumber{st.Rdev_major, st.Rdev_minor} == to.device
}

// milliseconds returns the wait with the timeout of poll and epoll_wait: an int, less
// than zero for no end.
func milliseconds(register uint64) wait {
	value := int32(register)
	if value < 0 {
		return wait{}
	}
	return wait{timed: true, timeout: time.Duration(value) * time.Millisecond}
}

// timeout returns the wait with the time at the address, which is 0 for no end.
func (p *process) timeout(tid int, address uint64, unit time.Duration) (wait, error) {
	if address == 0 {
		return wait{}, nil
	}
	var memory [sizeofTimespec]byte
	if err := p.memory(tid, address, memory[:]); err != nil {
		return wait{}, err
	}
	d, err := duration(memory[:], unit)
	return wait{timed: true, timeout: d}, err
}
