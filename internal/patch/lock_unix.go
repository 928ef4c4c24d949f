// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package patch

import (
	"os"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

func lock(f *os.File) error { return safefile.WaitLock(f) }
