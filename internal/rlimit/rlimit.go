// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rlimit knows the limit on open files that this process was started
// with. Package syscall raises the soft limit to the hard one when a Go program
// starts and keeps the old value to itself; programs that a sandbox starts
// should get the old one, because some (those that use select, and those that
// close every possible descriptor) misbehave under a large limit.
//
// The package has no imports at all. Go initializes packages in the order of
// their import paths as soon as what they import is ready, so this one reads
// the limit before package syscall changes it. It refuses to do anything else.
package rlimit

// atStart is read once, before any other package of this program runs.
var atStart = files()

type limit struct {
	soft, hard uint64
	ok         bool
}

// FilesAtStart returns the soft and the hard limit on open files that this
// process was started with. It returns false where that is not known.
func FilesAtStart() (soft, hard uint64, ok bool) {
	return atStart.soft, atStart.hard, atStart.ok
}
