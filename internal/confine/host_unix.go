// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package confine

import (
	"os"
	"os/exec"
	"syscall"
)

func find(r *Request) (string, error) { return lookup(r.Args[0], r.Dir, r.Env) }

// ownGroup makes the command leader of a session, and so of a process group.
func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func signalGroup(p *os.Process, sig syscall.Signal) error { return syscall.Kill(-p.Pid, sig) }

func exitOf(st *os.ProcessState) (code, signal int) {
	if ws, ok := st.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), int(ws.Signal())
	}
	return st.ExitCode(), 0
}
