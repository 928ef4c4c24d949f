// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Terminal takes one look whether the foreground process group of a terminal waits for
// input from it. It does not block and leaves nothing behind.
//
// master is the master end, an *os.File in the runtime's poller; others can read and
// write it meanwhile. nil and a closed file give an answer without Known. The terminal
// can be in another devpts file system, and the processes in other process, user and
// mount namespaces.
//
// pids are the processes of the tree, as this process sees them, listed for this look.
// Those outside of the foreground group are ignored. An empty list gives an answer
// without Known if there is a foreground group.
//
// Unread output of the master is a no: the caller has not seen the question yet. The
// caller keeps track of output that was read and of input that is not written yet, see
// [Await].
func Terminal(master *os.File, pids []int) Look {
	end, err := endOf(master)
	if err != nil {
		return unknown("the terminal is closed")
	}
	group, err := end.number(unix.TIOCGPGRP)
	if err != nil {
		return unknown("the terminal does not tell its foreground process group: " + err.Error())
	}
	if group <= 0 {
		// Opening the other end now could be its first opening, and closing it would look like
		// the end of the terminal.
		return no("the terminal has no foreground process group")
	}
	s := scan{of: "the foreground process group", verb: "reads the terminal"}
	defer s.close()
	if look, ok := s.begin(pids, group); !ok {
		return look
	}
	peer, err := end.peer()
	switch {
	case errors.Is(err, unix.EBUSY):
		return unknown("a program keeps the terminal for itself")
	case err != nil:
		return unknown("the terminal cannot be read: " + err.Error())
	}
	defer unix.Close(peer)
	to, kind, err := terminalTarget(peer)
	if err != nil {
		return unknown("the terminal cannot be read: " + err.Error())
	}
	if to.session, err = end.number(unix.TIOCGSID); err != nil {
		to.session = 0
	}
	if look, ok := drained(peer); !ok {
		return look
	}
	look := s.decide(to)
	if !look.Waiting {
		return look
	}
	look.Kind = kind
	if later, ok := drained(peer); !ok {
		return later
	}
	if now, err := end.number(unix.TIOCGPGRP); err != nil || now != group {
		return no("the foreground process group changed during the look")
	}
	// Output that the program wrote before it slept is here by now, or was read from here.
	// This comes last, because drained input can be echoed.
	if err := end.control(func(fd int) error {
		unread, err := readable(fd)
		if unread {
			look = no("there is output that was not read yet")
		}
		return err
	}); err != nil {
		return unknown("the terminal cannot be read: " + err.Error())
	}
	return look
}

// Pipe takes one look whether a process of a tree waits for input from a pipe. It does
// not block and leaves nothing behind.
//
// pipe is the write end that this process holds, an *os.File in the runtime's poller;
// nil, a closed file and anything but a pipe give an answer without Known. pids are the
// processes of the tree, as in [Terminal]; an empty list gives "not waiting". The answer
// is yes if a thread is blocked reading the pipe, or polling it for reading, nothing
// unread is in it, and the reader's process group is at rest. Look.Kind is [Line]. The
// caller keeps track of output before and after.
func Pipe(pipe *os.File, pids []int) Look {
	end, err := endOf(pipe)
	if err != nil {
		return unknown("the pipe is closed")
	}
	var to target
	err = end.control(func(fd int) (err error) {
		to, err = targetOf(fd)
		return err
	})
	if err != nil || !to.pipe {
		return unknown("the standard input is not a pipe")
	}
	unread, err := end.number(unix.TIOCINQ)
	if err != nil {
		return unknown("the pipe does not tell what is unread: " + err.Error())
	}
	if unread > 0 {
		return no(unreadInput)
	}
	s := scan{of: "the tree", verb: "reads the pipe", groups: true}
	defer s.close()
	if look, ok := s.begin(pids, 0); !ok {
		return look
	}
	look := s.decide(to)
	if !look.Waiting {
		return look
	}
	look.Kind = Line
	if unread, err := end.number(unix.TIOCINQ); err != nil || unread > 0 {
		return no(unreadInput)
	}
	return look
}

// no is the answer that no process waits.
func no(why string) Look { return Look{Known: true, Why: why} }

// unreadInput is the reason while input was not read.
const unreadInput = "there is input that was not read yet"

// An end is this process' end of a terminal or pipe. Its descriptor is used only within
// calls, so that closing the file does not wait for a look.
type end struct{ raw syscall.RawConn }

// endOf returns the end that the file is.
func endOf(file *os.File) (end, error) {
	raw, err := file.SyscallConn()
	return end{raw}, err
}

// control calls f with the descriptor.
func (e end) control(f func(fd int) error) error {
	var err error
	if closed := e.raw.Control(func(fd uintptr) { err = f(int(fd)) }); closed != nil {
		return closed
	}
	return err
}

// number asks the descriptor for an int.
func (e end) number(request uint) (int, error) {
	var value uint32
	err := e.control(func(fd int) (err error) {
		value, err = unix.IoctlGetUint32(fd, request)
		return err
	})
	return int(int32(value)), err
}

// peer opens the other end of a terminal, even if it is not mounted here. The caller
// closes it.
func (e end) peer() (int, error) {
	peer := -1
	err := e.control(func(fd int) error {
		flags := uintptr(unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC)
		opened, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, flags)
		if errno != 0 {
			return errno
		}
		peer = int(opened)
		return nil
	})
	return peer, err
}

// terminalTarget returns the terminal of a slave end, and how it takes input now.
func terminalTarget(peer int) (target, Kind, error) {
	to, err := targetOf(peer)
	if err != nil {
		return target{}, "", err
	}
	mode, err := unix.IoctlGetTermios(peer, unix.TCGETS)
	if err != nil {
		return target{}, "", err
	}
	switch {
	case mode.Lflag&unix.ICANON == 0:
		if mode.Cc[unix.VMIN] == 0 {
			to.readTime = time.Duration(mode.Cc[unix.VTIME]) * 100 * time.Millisecond // termios(3)
		}
		return to, Key, nil
	case mode.Lflag&unix.ECHO == 0:
		return to, Password, nil
	}
	return to, Line, nil
}

// drained returns true if nothing is left to read at the slave end of a terminal. The
// poll also moves on input that is on its way there from the master.
func drained(peer int) (Look, bool) {
	switch unread, err := readable(peer); {
	case errors.Is(err, errHungUp):
		return no(err.Error()), false
	case err != nil:
		return unknown("the terminal cannot be read: " + err.Error()), false
	case unread:
		return no(unreadInput), false
	}
	return Look{}, true
}

// errHungUp says that the terminal's session has ended.
var errHungUp = errors.New("the terminal was hung up")

// readable reports whether a read of the descriptor would find something.
func readable(fd int) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 0); err != nil {
		return false, err
	}
	events := fds[0].Revents
	if events&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
		return false, errHungUp
	}
	return events&unix.POLLIN != 0, nil
}

// A scan is one look at processes: it reads all of them, searches for the answer, and
// reads those again on which the answer depends.
type scan struct {
	of, verb string // for messages: whose processes, and what one of them must do
	// groups says that the processes are of many groups, and only that of the reader must
	// be at rest.
	groups    bool
	processes []*process
	refusal   string // why a thread could not be read; empty if all could
}

func (s *scan) close() {
	for _, p := range s.processes {
		p.close()
	}
}

// begin opens the processes and reads each thread. If it returns false, the answer
// counts.
func (s *scan) begin(pids []int, group int) (Look, bool) {
	if look, ok := s.join(pids, group); !ok {
		return look, false
	}
	return s.first()
}

// join opens the processes of the group, or all for group 0. If it returns false, the
// answer counts.
func (s *scan) join(pids []int, group int) (Look, bool) {
	pids = slices.Compact(slices.Sorted(slices.Values(pids)))
	for _, pid := range pids {
		if pid <= 0 {
			continue
		}
		if group > 0 {
			if now, err := unix.Getpgid(pid); errors.Is(err, unix.ESRCH) || err == nil && now != group {
				continue
			}
		}
		if len(s.processes) == maxProcesses {
			return unknown("there are more processes than a look takes in"), false
		}
		p, err := openProcess(pid)
		switch {
		case errors.Is(err, errGone):
			continue
		case err != nil:
			return unknown(fmt.Sprintf("process %d cannot be read: %v", pid, err)), false
		}
		if group > 0 && p.leader.group != group {
			p.close()
			continue
		}
		s.processes = append(s.processes, p)
	}
	if len(s.processes) > 0 {
		return Look{}, true
	}
	// Signal 0 tells whether the group exists. Group 1 would mean all processes.
	if group > 1 && !errors.Is(unix.Kill(-group, 0), unix.ESRCH) {
		return unknown("the foreground process group is not among the visible processes"), false
	}
	return no(s.of + " has no process"), false
}

// first reads what every thread does. If it returns false, the answer counts.
func (s *scan) first() (Look, bool) {
	candidates, stopped, living := 0, 0, 0
	for _, p := range s.processes {
		switch rest := restOf(p.leader.state); {
		case rest == awake && !s.groups:
			return no(p.String() + " runs"), false
		case rest == ended && p.leader.threads <= 1:
			continue
		case rest == stopping:
			stopped++
		}
		living++
		tids, err := p.tasks()
		if err != nil {
			return s.failed(p, err), false
		}
		for _, tid := range tids {
			t := thread{tid: tid}
			if t.switches, err = p.switches(tid); err != nil {
				return s.failed(p, err), false
			}
			t.call, t.err = p.call(tid)
			switch {
			case t.call.running && !s.groups:
				// It can have fallen asleep at this moment.
				if line, err := p.stat(tid); err != nil || restOf(line.state) == awake {
					return no(p.String() + " runs"), false
				}
			case errors.Is(t.err, errRefused):
				s.refusal = p.refusal()
			case t.err != nil && !errors.Is(t.err, errGone):
				s.refusal = fmt.Sprintf("%v cannot be read: %v", p, t.err)
			}
			if t.candidate() {
				candidates++
			}
			p.threads = append(p.threads, t)
		}
	}
	switch {
	case living == 0:
		return no(s.of + " has ended"), false
	case stopped == living:
		return no(s.of + " is stopped"), false
	case candidates == 0:
		return s.noReader(), false
	}
	return Look{}, true
}

// failed is the answer if a process could not be read to the end.
func (s *scan) failed(p *process, err error) Look {
	switch {
	case errors.Is(err, errGone):
		return no(p.String() + " or a thread of it " + errGone.Error())
	case errors.Is(err, errRefused):
		return unknown(p.refusal())
	}
	return unknown(p.String() + " cannot be read: " + err.Error())
}

// noReader is the answer if no wait was found.
func (s *scan) noReader() Look {
	if s.refusal != "" {
		return unknown(s.refusal)
	}
	return no("no process of " + s.of + " " + s.verb)
}

// decide searches for a thread that waits for the target and proves that all slept at
// one moment.
func (s *scan) decide(to target) Look {
	for _, p := range s.processes {
		for i := range p.threads {
			t := &p.threads[i]
			if !t.candidate() {
				continue
			}
			w, found, err := p.waits(t, to)
			switch {
			case errors.Is(err, errGone):
				continue // it went on; if another one waits, the counts tell
			case errors.Is(err, errRefused):
				s.refusal = p.refusal()
				continue
			case err != nil:
				s.refusal = fmt.Sprintf("%v cannot be read: %v", p, err)
				continue
			case !found || w.short():
				continue
			}
			// A stopped thread shows the call that it was stopped in.
			if line, err := p.stat(t.tid); err != nil || restOf(line.state) != asleep {
				continue
			}
			if why := s.again(p.leader.group); why != "" {
				return no(why)
			}
			return Look{Waiting: true, Known: true, PID: p.pid, Program: p.leader.name, Timed: w.timed,
				Timeout: w.timeout}
		}
	}
	return s.noReader()
}

// again reads every thread a second time and returns why they did not all sleep since
// the first time; "" if they did. With many groups only the given one, the reader's,
// counts.
//
// A thread that is asleep now and has not given up a processor since was asleep all the
// time. So there was a moment, after the first reading of the last thread and before the
// second of the first one, at which all slept.
func (s *scan) again(group int) string {
	for _, p := range s.processes {
		if s.groups && p.leader.group != group {
			continue
		}
		for _, t := range p.threads {
			line, err := p.stat(t.tid)
			if err != nil {
				return p.String() + " changed during the look"
			}
			if restOf(line.state) == awake {
				return p.String() + " runs"
			}
			count, err := p.switches(t.tid)
			if err != nil || count != t.switches || line.group != p.leader.group ||
				t.tid == p.pid && (line.start != p.leader.start || line.session != p.leader.session) {
				return p.String() + " changed during the look"
			}
		}
	}
	return ""
}

// A rest is the meaning of a thread's state. The zero value is awake: an unknown state
// counts as work.
type rest int

const (
	awake    rest = iota // R, D and unknown ones
	asleep               // S
	stopping             // T and t, by a signal and by a tracer
	ended                // Z and X
)

// restOf returns the meaning of a state letter (proc_pid_stat(5)).
func restOf(state byte) rest {
	switch state {
	case 'S':
		return asleep
	case 'T', 't':
		return stopping
	case 'Z', 'X', 'x':
		return ended
	}
	return awake
}
