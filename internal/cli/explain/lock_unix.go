// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package explain

import (
	"os"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// lock waits for the lock of an open file, which goes when the file is closed.
func lock(f *os.File) error { return safefile.WaitLock(f) }
