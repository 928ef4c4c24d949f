// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package safefile

import (
	"errors"
)

// Exchange exchanges nothing on this system.
func Exchange(uintptr, string, string) error { return errors.ErrUnsupported }
