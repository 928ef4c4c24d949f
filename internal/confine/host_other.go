// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Host starts processes on this machine. On this system only full access can
// be had; every other policy is refused. The zero Host is ready to use.
type Host struct {
	mu     sync.Mutex
	closed bool
}

// Facts is what is known about the machine.
func (h *Host) Facts() *plan.Host {
	return &plan.Host{System: runtime.GOOS, Arch: runtime.GOARCH, UID: os.Geteuid(), GID: os.Getegid()}
}

// Start starts a command with full access, or refuses.
func (h *Host) Start(ctx context.Context, r *Request, stdin, stdout, stderr *os.File) (Child, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if len(r.Args) == 0 {
		return nil, errors.New("command args are empty")
	}
	for _, s := range append(append([]string{r.Dir, r.Arg0}, r.Args...), r.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, fmt.Errorf("%q contains a NUL byte, which no argument, variable or path can hold", s)
		}
	}
	if st, err := os.Stat(r.Dir); err != nil {
		return nil, &DirError{Dir: r.Dir, Err: err}
	} else if !st.IsDir() {
		return nil, &DirError{Dir: r.Dir, Err: syscall.ENOTDIR}
	}
	if r.Policy.Mode() == sandbox.Managed {
		_, err := plan.Make(h.Facts(), &plan.Request{Mode: r.Policy.Mode()})
		return nil, err
	}
	program, err := find(r)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: program, Args: append([]string(nil), r.Args...), Env: r.Env, Dir: r.Dir,
		Stdin: stdin, Stdout: stdout, Stderr: stderr}
	if r.Arg0 != "" {
		cmd.Args[0] = r.Arg0
	}
	ownGroup(cmd)
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, startError(r.Args[0], err)
	}
	return &child{cmd: cmd}, nil
}

// Close refuses further starts.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return nil
}

// A child is a process in a group of its own.
type child struct {
	cmd *exec.Cmd
}

func (c *child) PID() int { return c.cmd.Process.Pid }

func (c *child) Wait() (code, signal int, err error) {
	err = c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1, 0, err
	}
	code, signal = exitOf(c.cmd.ProcessState)
	return code, signal, nil
}

// WaitAll returns at once: this system has no way to wait for what a command
// left behind.
func (c *child) WaitAll() error { return nil }

func (c *child) Signal(sig syscall.Signal, _ bool) error { return signalGroup(c.cmd.Process, sig) }

func (c *child) Kill() error { return signalGroup(c.cmd.Process, syscall.SIGKILL) }

// Survivors is empty: they cannot be found on this system.
func (c *child) Survivors() []executor.Survivor { return nil }

func (c *child) Close() error { return nil }

func (c *child) Sandbox() executor.Sandbox {
	return executor.Sandbox{
		Level: plan.LevelNone, Mechanism: []string{"process-group"},
		Weaker: []string{"what a command leaves behind outside of its process group is neither found nor ended"},
	}
}
