// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A BubblewrapMonitor follows the processes of bubblewrap for one command: bubblewrap's monitor
// process, which the launcher has started, then the init process inside, then the command.
//
// The monitor process ends as soon as the command has, and the init process and all others
// with it. To name those that the command left behind, the kernel stops the monitor process
// in the very call that reports the exit code: the status socket sends a signal to it whenever
// something is written (F_SETSIG in fcntl(2)).
//
// That must be set up between two writes. The kernel wakes the reader of the first line before
// it looks for a process to signal, so the reader alone cannot tell when that write is over; the
// monitor process would be stopped in it for ever. But only after it does the monitor process
// let its child go on, and the child, which builds the sandbox, reads the same socket to its
// end (--file in the plan): when it has begun to read, the first write is over, and until the
// end comes there is no command.
type BubblewrapMonitor struct {
	proc   *launch.Process
	status *os.File // our end of the socket on which bubblewrap reports
	pumps  pumps
	// stopped is the signal that came before the command was there.
	stopped atomic.Int32

	done  chan struct{} // closed when the status has ended; the rest is written before
	exit  int           // the command's exit code
	known bool          // bubblewrap reported it
	left  []executor.Survivor
}

// OpenBubblewrap opens the pipes that bubblewrap is started with, and puts them into files. The
// caller calls [BubblewrapMonitor.Follow] or [BubblewrapMonitor.Abandon] next.
func OpenBubblewrap(files *launch.Files) (*BubblewrapMonitor, error) {
	status, theirs, err := openStatus()
	if err != nil {
		return nil, fmt.Errorf("bubblewrap's status: %w", err)
	}
	m := &BubblewrapMonitor{status: status, done: make(chan struct{})}
	m.pumps.theirs = append(m.pumps.theirs, theirs)
	ends, err := m.pumps.open([3]*os.File{files.Stdin, files.Stdout, files.Stderr})
	if err != nil {
		m.Abandon()
		return nil, err
	}
	files.Stdin, files.Stdout, files.Stderr, files.Status = ends[0], ends[1], ends[2], theirs
	return m, nil
}

// openStatus makes the socket, whose first end holds little that was not read.
func openStatus() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	const least = 1 // the kernel's minimum is larger
	if err = unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, least); err == nil {
		err = unix.SetNonblock(fds[0], true)
	}
	if err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "bubblewrap's status"),
		os.NewFile(uintptr(fds[1]), "bubblewrap's status"), nil
}

// Abandon closes the pipes of a launch that failed.
func (m *BubblewrapMonitor) Abandon() {
	m.status.Close()
	m.pumps.abandon()
}

// Follow follows the bubblewrap that was launched.
func (m *BubblewrapMonitor) Follow(proc *launch.Process) {
	m.proc = proc
	m.pumps.start()
	go m.read()
}

// Exit returns how the command ended, when bubblewrap itself has ended with a code. It ends
// with a code of its own when it cannot build the sandbox; only its status tells that from a
// command that ended with the same code.
func (m *BubblewrapMonitor) Exit(code int) (exit, signal int, err error) {
	// The pipe ends with bubblewrap; no process inside has it.
	const patience = 5 * time.Second
	_ = m.status.SetReadDeadline(time.Now().Add(patience))
	<-m.done
	sig := int(m.stopped.Load())
	switch {
	case m.known:
		return m.exit, 0, nil
	case sig != 0:
		return 128 + sig, sig, nil
	}
	return -1, 0, &sandbox.UnsupportedError{
		Need: "a sandbox by bubblewrap",
		Have: fmt.Sprintf("it failed to build the sandbox (exit code %d), so the command did not run; its message is on standard error", code),
		Hint: hostfacts.SeeDoctor,
	}
}

// read reads bubblewrap's status to its end.
func (m *BubblewrapMonitor) read() {
	defer close(m.done)
	defer m.resume()
	m.handOver()
	piece, line := make([]byte, 4096), []byte(nil)
	for {
		n, err := m.status.Read(piece)
		line = append(line, piece[:n]...)
		for {
			one, rest, ok := bytes.Cut(line, []byte("\n"))
			if !ok {
				break
			}
			line = rest
			if code, ok := exitCode(one); ok && !m.known {
				m.exit, m.known = code, true
				m.proc.WhileThere(func() { m.left = process.SurvivorsBelow(onlyChild(m.proc.CommandPID())) })
				m.resume() // to report that has stopped the monitor process
			}
		}
		if err != nil {
			return
		}
	}
}

// handOver has the monitor process stopped by its next report, and then lets its child build
// the sandbox. It returns as well when bubblewrap ends before.
func (m *BubblewrapMonitor) handOver() {
	// Many times what the socket holds: when all is written, the child reads.
	if _, err := m.status.Write(make([]byte, 64<<10)); err == nil {
		m.stopOnStatus(true)
	}
	// only fails when bubblewrap has ended
	_ = control(m.status, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
}

// exitCode returns the command's exit code from a line of bubblewrap's status, a JSON
// object.
func exitCode(line []byte) (int, bool) {
	var s struct {
		Exit *int `json:"exit-code"`
	}
	if json.Unmarshal(line, &s) != nil || s.Exit == nil {
		return 0, false
	}
	return *s.Exit, true
}

// stopOnStatus has the kernel stop the monitor process when it writes its status, or ends
// that: no signal is sent after it has returned. Where the kernel cannot do that, survivors
// are killed without a name.
func (m *BubblewrapMonitor) stopOnStatus(on bool) {
	_ = control(m.status, func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if flags &^= unix.O_ASYNC; on && err == nil {
			const setSignal = 10 // F_SETSIG
			flags |= unix.O_ASYNC
			if _, err = unix.FcntlInt(uintptr(fd), unix.F_SETOWN, m.proc.CommandPID()); err == nil {
				_, err = unix.FcntlInt(uintptr(fd), setSignal, int(unix.SIGSTOP))
			}
		}
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
		}
		return err
	})
}

// resume continues the monitor process. A line can be read a moment before its signal is
// sent, so no more signals are asked for first.
func (m *BubblewrapMonitor) resume() {
	m.stopOnStatus(false)
	if p, ok := process.ReadMember(m.proc.CommandPID()); ok && p.Parent == m.proc.PID() {
		p.Signal(unix.SIGCONT)
	}
}

// Survivors returns the processes that were there when the command ended. They have ended
// by now, with the init process. If that was not reported it returns those that are there.
func (m *BubblewrapMonitor) Survivors() (left []executor.Survivor) {
	select {
	case <-m.done:
		return m.left
	default:
	}
	m.proc.WhileThere(func() { left = process.SurvivorsBelow(m.initPID()) }) // none below 0
	return left
}

// initPID returns the init process inside, the child of the monitor process, or 0.
func (m *BubblewrapMonitor) initPID() int { return onlyChild(onlyChild(m.proc.PID())) }

// Wait waits for the end of the pipes, when the process tree has ended.
func (m *BubblewrapMonitor) Wait() { m.pumps.wait() }

// Close waits for the end of the pipes and closes the status.
func (m *BubblewrapMonitor) Close() {
	m.Wait()
	m.status.Close()
	<-m.done
}

// Signal signals the command's process group, or with tree everything in the sandbox, and
// not bubblewrap: its monitor process would end at once and take everything along. It
// returns false when nothing is inside, because bubblewrap has only started or has ended.
func (m *BubblewrapMonitor) Signal(sig syscall.Signal, tree bool) (inside bool, err error) {
	there := m.proc.WhileThere(func() { inside, err = m.signalInside(sig, tree) })
	return there && inside, err
}

// signalInside is Signal while the reaper cannot be collected.
func (m *BubblewrapMonitor) signalInside(sig syscall.Signal, tree bool) (inside bool, err error) {
	first := m.initPID()
	if first == 0 {
		return false, nil
	}
	if p, ok := process.ReadMember(first); ok && len(process.Below(first)) == 0 {
		// It still builds the sandbox, or the command is over. Killing the init process
		// stops the former, and does not change what the monitor process says of the latter.
		m.stopped.Store(int32(sig))
		p.Signal(unix.SIGKILL)
		return true, nil
	}
	if tree {
		process.SignalBelow(first, sig)
		return true, nil
	}
	// The init process leads the command's session and group. It ignores what does not kill.
	// It is looked at again after the handle: until its parent collects it, the number is its own.
	fd, err := unix.PidfdOpen(first, 0)
	if err == nil {
		defer unix.Close(fd)
		if m.initPID() == first && unix.Kill(-first, sig) == nil {
			return true, nil
		}
	}
	return true, os.ErrProcessDone
}

// onlyChild returns the first child of a process, or 0.
func onlyChild(pid int) int {
	first, _, _ := strings.Cut(hostfacts.OneLine(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)), " ")
	n, _ := strconv.Atoi(first) // 0 for an empty text
	return n
}
