// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package patch

import (
	"errors"
	"os"
)

// swap exchanges nothing on this system.
func swap(*os.File, string, string) error { return errors.ErrUnsupported }
