// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

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
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/process"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A bwrapped is a child below bubblewrap: its monitor, which the launcher
// started, then the first process inside, then the command.
//
// The monitor ends as soon as the command has, and the first process and all the
// others with it. To name those that the command left behind, the monitor is
// stopped by the kernel in the very call that tells the exit code: the pipe of the
// status sends a signal to it whenever something is written (F_SETSIG in fcntl(2)).
// That is asked for when the first line is there, which comes before the sandbox is
// built; a command that is over before this program was given the time to ask for
// it leaves survivors that are ended without a name.
type bwrapped struct {
	*child
	status *os.File // what bubblewrap tells
	pumps  *pumps
	// stopped is the signal that came before the command was there.
	stopped atomic.Int32

	heard chan struct{} // closed when the status has ended; the rest is there then
	exit  int           // the command's exit code
	known bool          // it was told
	left  []executor.Survivor
}

// launchBwrap performs a plan for bubblewrap.
func (h *Host) launchBwrap(p *plan.Plan, files launch.Files) (*bwrapped, error) {
	status, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("bubblewrap's status: %w", err)
	}
	defer theirs.Close()
	pumps, ends, err := newPumps([3]*os.File{files.Stdin, files.Stdout, files.Stderr})
	if err != nil {
		status.Close()
		return nil, err
	}
	defer pumps.started()
	files.Stdin, files.Stdout, files.Stderr, files.Status = ends[0], ends[1], ends[2], theirs
	c, err := h.launch(p, nil, files)
	if err != nil {
		status.Close()
		pumps.abandon()
		return nil, err
	}
	pumps.run()
	b := &bwrapped{child: c, status: status, pumps: pumps, heard: make(chan struct{})}
	go b.hear()
	return b, nil
}

// Wait returns the command's exit code. Bubblewrap ends with a code of its own
// when it could not build the sandbox; only its status tells that from a
// command that ended with the same.
func (b *bwrapped) Wait() (code, signal int, err error) {
	code, signal, err = b.child.Wait()
	if err != nil || code < 0 || signal != 0 {
		return code, signal, err
	}
	// Its process has ended, so the pipe ends; nobody inside has it.
	const patience = 5 * time.Second
	_ = b.status.SetReadDeadline(time.Now().Add(patience))
	<-b.heard
	if sig := int(b.stopped.Load()); !b.known && sig != 0 {
		return 128 + sig, sig, nil
	}
	if !b.known {
		return -1, 0, &sandbox.UnsupportedError{
			Need: "a sandbox by bubblewrap", Have: fmt.Sprintf("it could not build it (exit %d), so the command did not run; its words are on standard error", code),
			Hint: hostfacts.SeeDoctor,
		}
	}
	return b.exit, 0, nil
}

// hear reads bubblewrap's status to its end.
func (b *bwrapped) hear() {
	defer close(b.heard)
	piece, line, lines := make([]byte, 4096), []byte(nil), 0
	defer b.release()
	for {
		armed := lines > 0
		n, err := b.status.Read(piece)
		line = append(line, piece[:n]...)
		for {
			one, rest, ok := bytes.Cut(line, []byte("\n"))
			if !ok {
				break
			}
			line = rest
			if begun := lines == 0; begun {
				b.arm()
			}
			lines++
			if code, ok := exitCode(one); ok && !b.known {
				b.exit, b.known = code, true
				b.proc.WhileThere(func() { b.left = process.SurvivorsBelow(onlyChild(b.proc.CommandPID())) })
			}
		}
		if armed {
			b.release() // whatever it was: it has stopped the monitor
		}
		if err != nil {
			return
		}
	}
}

// exitCode finds the command's exit code in a line of bubblewrap's status, a JSON
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

// arm has the kernel stop the monitor when it writes its status. Where it cannot,
// survivors are ended without a name.
func (b *bwrapped) arm() {
	raw, err := b.status.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		const setSignal = 10 // F_SETSIG
		if _, err := unix.FcntlInt(fd, unix.F_SETOWN, b.proc.CommandPID()); err != nil {
			return
		}
		if _, err := unix.FcntlInt(fd, setSignal, int(unix.SIGSTOP)); err != nil {
			return
		}
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err == nil {
			_, _ = unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_ASYNC)
		}
	})
}

// release lets the monitor go on. What was written can be read a moment before the
// signal is on its way; so first no more signals are asked for.
func (b *bwrapped) release() {
	b.disarm()
	if monitor, ok := process.ReadMember(b.proc.CommandPID()); ok && monitor.Parent == b.PID() {
		monitor.Signal(unix.SIGCONT)
	}
}

// disarm ends what arm began. No signal is sent after it has returned.
func (b *bwrapped) disarm() {
	raw, err := b.status.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err == nil {
			_, _ = unix.FcntlInt(fd, unix.F_SETFL, flags&^unix.O_ASYNC)
		}
	})
}

// Survivors are those that were there when the command ended. They have ended by
// now, with the first process inside.
func (b *bwrapped) Survivors() []executor.Survivor {
	select {
	case <-b.heard:
		return b.left
	default:
		return b.child.Survivors()
	}
}

func (b *bwrapped) WaitAll() error {
	err := b.child.WaitAll()
	b.pumps.wait()
	return err
}

func (b *bwrapped) Close() error {
	b.pumps.wait()
	b.status.Close()
	return b.child.Close()
}

// Signal reaches the command and what it started, and not bubblewrap: its
// monitor would end at once and take everything along.
func (b *bwrapped) Signal(sig syscall.Signal, tree bool) error {
	inside := false
	var err error
	there := b.proc.WhileThere(func() { inside, err = b.signalInside(sig, tree) })
	if there && inside {
		return err
	}
	return b.child.Signal(sig, tree) // the monitor has only begun, or has ended
}

// signalInside is Signal for what is inside, and reports whether there is something.
// The reaper cannot be collected meanwhile.
func (b *bwrapped) signalInside(sig syscall.Signal, tree bool) (inside bool, err error) {
	first := onlyChild(onlyChild(b.PID())) // the monitor's child is the first process inside
	if first == 0 {
		return false, nil
	}
	if m, ok := process.ReadMember(first); ok && len(process.Below(first)) == 0 {
		// It is still building, or the command is over. Ending the first process
		// stops the one, and does not change what the monitor says of the other.
		b.stopped.Store(int32(sig))
		m.Signal(unix.SIGKILL)
		return true, nil
	}
	if tree {
		process.SignalBelow(first, sig)
		return true, nil
	}
	// The first process inside leads the command's session and group. It ignores
	// what does not kill.
	fd, err := unix.PidfdOpen(first, 0)
	if err != nil {
		return true, os.ErrProcessDone
	}
	defer unix.Close(fd)
	if onlyChild(onlyChild(b.PID())) != first { // the number was used again
		return true, os.ErrProcessDone
	}
	if err := unix.Kill(-first, sig); err != nil {
		return true, os.ErrProcessDone
	}
	return true, nil
}

// onlyChild is the first child of a process, or 0.
func onlyChild(pid int) int {
	words := strings.Fields(hostfacts.OneLine(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)))
	if pid == 0 || len(words) == 0 {
		return 0
	}
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return 0
	}
	return n
}
