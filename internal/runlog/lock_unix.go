// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package runlog

import (
	"os"

	"github.com/sallyport-dev/sallyport/internal/filelock"
)

// lock waits for the lock of an open file, which goes when the file is closed.
func lock(f *os.File) error { return filelock.Wait(f) }
