// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package files

import (
	"errors"
	"io/fs"
)

// Append is not supported on this system. The error is an [fs.PathError].
func Append(path, _ string) error {
	return &fs.PathError{Op: "append a rule to", Path: path, Err: errors.ErrUnsupported}
}

// Remove is not supported on this system. The error is an [fs.PathError].
func Remove(path, _ string) (bool, error) {
	return false, &fs.PathError{Op: "remove a rule from", Path: path, Err: errors.ErrUnsupported}
}
