// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package hostfacts

import "path/filepath"

// EvalSymlinks is [filepath.EvalSymlinks].
func EvalSymlinks(name string) (string, error) { return filepath.EvalSymlinks(name) }
