// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package output

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// lockExclusive waits for the lock that says that a file is being written. Others hold
// it only for the moment in which they look who owns the file.
func lockExclusive(f *os.File) error { return safefile.WaitLock(f) }

// lockShared turns the lock of a file into the one that says that it has ended.
func lockShared(f *os.File) error { return safefile.Lock(f, unix.LOCK_SH) }

// probe tells who owns an open file. It may take the file's lock, which goes when the
// file is closed.
func probe(f *os.File) owner {
	if safefile.Lock(f, unix.LOCK_EX|unix.LOCK_NB) == nil {
		return ownerGone
	}
	if safefile.Lock(f, unix.LOCK_SH|unix.LOCK_NB) == nil {
		return ownerDone
	}
	return ownerWrites
}
