// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package confine

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
)

func find(r *executor.Spec) (string, error) { return hostfacts.Lookup(r.Args[0], r.Dir, r.Env) }

// A group is a command in a process group of its own.
type group struct {
	cmd     *exec.Cmd
	sandbox executor.Sandbox
}

// startGroup starts a command as the leader of a session, and so of a process
// group. The session has no terminal, so none can be typed into.
func startGroup(r *executor.Spec, cmd *exec.Cmd, s executor.Sandbox) (Child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, hostfacts.StartError(r.Args[0], err)
	}
	return &group{cmd: cmd, sandbox: s}, nil
}

func (g *group) PID() int { return g.cmd.Process.Pid }

func (g *group) Wait() (code, signal int, err error) {
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

// WaitAll returns at once: there is no event for the end of a process group.
func (g *group) WaitAll() error { return nil }

// Signal knows the group only, so a tree that has left it is not reached.
func (g *group) Signal(sig syscall.Signal, _ bool) error {
	err := syscall.Kill(-g.PID(), sig)
	if errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM) && len(g.Survivors()) == 0 {
		return nil // it has ended; of zombies some systems say that they may not be signaled
	}
	return err
}

func (g *group) Kill() error { return g.Signal(syscall.SIGKILL, true) }

// Terminal is nil: no terminals are made on these systems.
func (g *group) Terminal() *os.File { return nil }

// Processes are the members of the group.
func (g *group) Processes() []int {
	var out []int
	for _, s := range members(g.PID()) {
		out = append(out, s.PID)
	}
	return out
}

// Survivors are the members of the group that are alive.
func (g *group) Survivors() []executor.Survivor { return members(g.PID()) }

// EndedBy is the group.
func (g *group) EndedBy() string { return executor.ByGroup }

func (g *group) Close() error { return nil }

func (g *group) Sandbox() executor.Sandbox { return g.sandbox }

// Aftermath is nothing: what stands around a command here holds by name, also for
// names that do not exist yet.
func (g *group) Aftermath() Aftermath { return Aftermath{} }
