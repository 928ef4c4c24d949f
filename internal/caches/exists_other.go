// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package caches

import "os"

// exists reports whether something has the name.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
