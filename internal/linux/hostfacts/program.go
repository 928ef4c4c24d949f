// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// SeeDoctor is the hint where no better one is known.
const SeeDoctor = "see sallyport doctor"

// StartError puts the reason into words.
func StartError(name string, err error) *executor.StartError {
	e := &executor.StartError{Program: name}
	name = text.Word(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.NotFound = true
		e.Err = fmt.Errorf("%s: not found: %w", name, err)
	case errors.Is(err, syscall.EISDIR):
		e.Err = fmt.Errorf("%s: is a directory, not a program: %w", name, err)
	case errors.Is(err, syscall.ENOEXEC):
		e.Err = fmt.Errorf("%s: cannot be run: it is neither a program for this machine nor a script that begins with #!: %w", name, err)
	case errors.Is(err, syscall.E2BIG):
		e.Err = fmt.Errorf("%s: cannot be run: the arguments and the environment are too large for the kernel; pass them in a file or on standard input: %w", name, err)
	case errors.Is(err, syscall.ETXTBSY):
		e.Err = fmt.Errorf("%s: cannot be run: another process is writing to it: %w", name, err)
	case errors.Is(err, fs.ErrPermission):
		e.Err = fmt.Errorf("%s: cannot be run: permission denied (is it executable, and does the policy let it be read?): %w", name, err)
	default:
		e.Err = fmt.Errorf("%s: cannot be run: %w", name, err)
	}
	return e
}
