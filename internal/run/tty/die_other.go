// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package tty

import (
	"os"
	"os/signal"
)

// KeepSignals does nothing on this system.
func KeepSignals() {}

// UnderShell is not known on this system.
func UnderShell() bool { return false }

func catchable(os.Signal) {}

// ignored reports whether this process ignores a signal.
func ignored(s os.Signal) bool { return signal.Ignored(s) }
