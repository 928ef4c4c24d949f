// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import "golang.org/x/sys/unix"

// SignalNumber returns the number of a signal of this system by its name, such as "SIGTERM"; 0
// when there is none that can be sent to a command.
func SignalNumber(name string) int { return int(unix.SignalNum(name)) }

// SignalName returns the name of a signal of this system by its number; empty when it has none.
func SignalName(number int) string { return unix.SignalName(unix.Signal(number)) }
