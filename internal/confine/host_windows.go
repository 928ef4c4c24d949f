// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"os"
	"os/exec"
	"syscall"
)

// find leaves the rules of PATHEXT to package os/exec.
func find(r *Request) (string, error) {
	p, err := exec.LookPath(r.Args[0])
	if err != nil {
		return "", startError(r.Args[0], os.ErrNotExist)
	}
	return p, nil
}

// ownGroup keeps the console's Ctrl-C from the command.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// signalGroup can only end the process itself here.
func signalGroup(p *os.Process, _ syscall.Signal) error { return p.Kill() }

func exitOf(st *os.ProcessState) (code, signal int) { return st.ExitCode(), 0 }
