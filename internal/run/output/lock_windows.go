// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockAt is the high half of the offset of the byte that is locked: locks on this
// system keep others from reading what they cover, so it lies behind all output.
const lockAt = 1 << 30

func lockExclusive(f *os.File) error { return lockByte(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func lockShared(f *os.File) error {
	if err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0,
		&windows.Overlapped{OffsetHigh: lockAt}); err != nil {
		return err
	}
	return lockByte(f, 0)
}

func probe(f *os.File) owner {
	if lockByte(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY) == nil {
		return ownerGone
	}
	if lockByte(f, windows.LOCKFILE_FAIL_IMMEDIATELY) == nil {
		return ownerDone
	}
	return ownerWrites
}

func lockByte(f *os.File, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: lockAt})
}
