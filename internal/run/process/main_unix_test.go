// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import "syscall"

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func killGroup(pid int, sig syscall.Signal) error { return syscall.Kill(-pid, sig) }
