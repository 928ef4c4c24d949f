// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

func ownSession() *syscall.SysProcAttr { return nil }

func killGroup(pid int, _ syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
