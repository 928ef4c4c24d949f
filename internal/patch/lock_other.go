// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package patch

import "os"

// lock does nothing: two patches at once may undo each other.
func lock(*os.File) error { return nil }
