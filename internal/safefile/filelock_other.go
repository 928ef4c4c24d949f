// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package safefile

import (
	"errors"
	"os"
)

// WaitLock is an error: no files are shared between processes on this system.
func WaitLock(*os.File) error { return errors.ErrUnsupported }

// Unlock does nothing.
func Unlock(*os.File) {}

// A HeldError says that another process held a lock; there are none on this system.
type HeldError struct{}

// Error returns one sentence.
func (*HeldError) Error() string { return "another process has held the lock" }
