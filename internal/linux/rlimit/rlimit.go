// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rlimit reads the limit on open files that this process was started with.
//
// Package syscall raises the soft limit to the hard one when a Go program starts, and does
// not tell the old value. Programs in a sandbox should get the old one: programs that use
// select(2), and programs that close every possible descriptor, misbehave under a large
// limit.
//
// The package imports nothing, and does nothing else. Go initializes packages in the order
// of their import paths as soon as their imports are initialized, so this one reads the
// limit before package syscall changes it. That is also why it is not a part of package
// limits, and makes its system call by itself.
package rlimit

// atStart is read before any other package of this program is initialized.
var atStart = files()

type limit struct {
	soft, hard uint64
	ok         bool
}

// FilesAtStart returns the soft and the hard limit on open files that this process was
// started with, and false where they are unknown.
func FilesAtStart() (soft, hard uint64, ok bool) {
	return atStart.soft, atStart.hard, atStart.ok
}
