// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package tty

import "os"

// Inherited returns nil: no descriptors are passed on here.
func Inherited(int) *os.File { return nil }

// IsPipe returns false.
func IsPipe(*os.File) bool { return false }
