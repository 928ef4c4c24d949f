// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
)

// A Group is a command in a process group of its own. What leaves the group is not found.
type Group struct {
	cmd     *exec.Cmd
	sandbox executor.Sandbox
}

// StartGroup starts a command as the leader of a session, and so of a process group. The
// session has no terminal, so no process can inject input into one.
func StartGroup(cmd *exec.Cmd, s executor.Sandbox) (*Group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Group{cmd: cmd, sandbox: s}, nil
}

// PID returns the command's own.
func (g *Group) PID() int { return g.cmd.Process.Pid }

// Wait blocks until the command itself has ended.
func (g *Group) Wait() (code, signal int, err error) {
	err = g.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1, 0, err
	}
	st := g.cmd.ProcessState
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), int(ws.Signal()), nil
	}
	return st.ExitCode(), 0, nil
}

// WaitAll returns at once: no event reports the end of a process group.
func (g *Group) WaitAll() error { return nil }

// Signal signals the group, whether or not the whole tree is meant.
func (g *Group) Signal(sig syscall.Signal, _ bool) error {
	err := syscall.Kill(-g.PID(), sig)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) && len(g.Survivors()) == 0 {
		return nil // it has ended; some systems return EPERM for zombies
	}
	return err
}

// Kill kills the group.
func (g *Group) Kill() error { return g.Signal(syscall.SIGKILL, true) }

// Terminal returns nil: terminals are not supported on these systems.
func (g *Group) Terminal() *os.File { return nil }

// Processes returns the PIDs of the group.
func (g *Group) Processes() []int {
	var out []int
	for _, s := range members(g.PID()) {
		out = append(out, s.PID)
	}
	return out
}

// Survivors returns the members of the group that run.
func (g *Group) Survivors() []executor.Survivor { return members(g.PID()) }

// Close adds to exit what was enforced.
func (g *Group) Close(exit *executor.Exit) error {
	exit.Sandbox, exit.SurvivorsBy = g.sandbox, executor.ByGroup
	return nil
}

// Sandbox returns what was enforced.
func (g *Group) Sandbox() executor.Sandbox { return g.sandbox }
