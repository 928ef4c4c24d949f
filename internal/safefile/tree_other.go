// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package safefile

import (
	"errors"
	"io/fs"
	"os"
)

// NoWait is for systems on which package os tries to wait for files.
const NoWait = 0

// The profile of a user is closed to others here, and modes say nothing.

// IsForeign reports whether a file belongs to another user than that of this process. Where files have no
// owners, none does.
func IsForeign(fs.FileInfo) bool { return false }

func closed(fs.FileInfo) bool { return true }

// RemoveTree removes name from parent with everything below it, and follows no link.
func RemoveTree(parent *os.Root, name string) error { return parent.RemoveAll(name) }

// RemoveTreeUntil is [RemoveTree]; it takes as long as there are files.
func RemoveTreeUntil(parent *os.Root, name string, _ <-chan struct{}) error {
	return RemoveTree(parent, name)
}

// keepOwner does nothing: a new file has the owner of its directory's files here.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

// Mark returns [errors.ErrUnsupported].
func Mark(*os.File) error { return errors.ErrUnsupported }

// Marked returns false.
func Marked(*os.File) bool { return false }

// holds says that it is known which files processes hold.
const holds = false

// hold does nothing.
func hold(*os.File) (release func(), ok bool) { return func() {}, true }
