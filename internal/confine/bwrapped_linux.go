// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A bwrapped is a child below bubblewrap: its monitor, which the launcher
// started, then the first process inside, then the command.
type bwrapped struct {
	*child
	status *os.File // what bubblewrap tells
	pumps  *pumps
	// stopped is the signal that came before the command was there.
	stopped atomic.Int32
}

// launchBwrap performs a plan for bubblewrap.
func (h *Host) launchBwrap(p *plan.Plan, stdin, stdout, stderr *os.File) (*bwrapped, error) {
	status, theirs, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("bubblewrap's status: %w", err)
	}
	defer theirs.Close()
	pumps, ends, err := newPumps([3]*os.File{stdin, stdout, stderr})
	if err != nil {
		status.Close()
		return nil, err
	}
	defer pumps.started()
	c, err := h.launchWith(p, theirs, ends)
	if err != nil {
		status.Close()
		pumps.abandon()
		return nil, err
	}
	pumps.run()
	return &bwrapped{child: c, status: status, pumps: pumps}, nil
}

// launchWith tells the plan's script which descriptor is bubblewrap's status.
func (h *Host) launchWith(p *plan.Plan, status *os.File, ends [3]*os.File) (*child, error) {
	raw, err := status.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("bubblewrap's status: %w", err)
	}
	const high = 64 // above every number that the script gives out
	up := -1
	if cerr := raw.Control(func(fd uintptr) { up, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, high) }); cerr != nil {
		err = cerr
	}
	if err != nil {
		return nil, fmt.Errorf("bubblewrap's status: %w", err)
	}
	defer unix.Close(up)
	for i := range p.Script.Steps {
		if s := &p.Script.Steps[i]; s.Op == launch.OpPass {
			s.From = up
		}
	}
	return h.launch(p, ends[0], ends[1], ends[2])
}

// Wait returns the command's exit code. Bubblewrap ends with a code of its own
// when it could not build the sandbox; only its status tells that from a
// command that ended with the same.
func (b *bwrapped) Wait() (code, signal int, err error) {
	code, signal, err = b.child.Wait()
	if err != nil || signal != 0 {
		return code, signal, err
	}
	// Its process has ended, so the pipe ends; nobody inside has it.
	const patience = 5 * time.Second
	_ = b.status.SetReadDeadline(time.Now().Add(patience))
	exit, ok := exitCode(b.status)
	if sig := int(b.stopped.Load()); !ok && sig != 0 {
		return 128 + sig, sig, nil
	}
	if !ok {
		return -1, 0, &sandbox.UnsupportedError{
			Need: "a sandbox by bubblewrap", Have: fmt.Sprintf("it could not build it (exit %d), so the command did not run; its words are on standard error", code),
			Hint: seeDoctor,
		}
	}
	return exit, 0, nil
}

// exitCode finds the command's exit code in bubblewrap's status: one JSON object a line.
func exitCode(f io.Reader) (int, bool) {
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s struct {
			Exit *int `json:"exit-code"`
		}
		if json.Unmarshal(lines.Bytes(), &s) == nil && s.Exit != nil {
			return *s.Exit, true
		}
	}
	return 0, false
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
	first := onlyChild(onlyChild(b.PID())) // the monitor's child is the first process inside
	if first == 0 {
		return b.child.Signal(sig, tree) // the monitor has only begun, or has ended
	}
	if len(descendants(first)) == 0 {
		// It is still building, or the command is over. Ending the first process
		// stops the one, and does not change what the monitor says of the other.
		b.stopped.Store(int32(sig))
		signalDescendant(b.PID(), first, unix.SIGKILL)
		return nil
	}
	if tree {
		for _, pid := range descendants(first) {
			signalDescendant(first, pid, sig)
		}
		return nil
	}
	// The first process inside leads the command's session and group. It ignores
	// what does not kill.
	fd, err := unix.PidfdOpen(first, 0)
	if err != nil {
		return os.ErrProcessDone
	}
	defer unix.Close(fd)
	if onlyChild(onlyChild(b.PID())) != first { // the number was used again
		return os.ErrProcessDone
	}
	if err := unix.Kill(-first, sig); err != nil {
		return os.ErrProcessDone
	}
	return nil
}

// onlyChild is the first child of a process, or 0.
func onlyChild(pid int) int {
	words := strings.Fields(oneLine(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)))
	if pid == 0 || len(words) == 0 {
		return 0
	}
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return 0
	}
	return n
}
