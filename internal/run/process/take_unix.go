// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// take writes what the file takes at once, after waiting until it takes anything. The error is
// io.ErrShortWrite where that was a part: a write of *os.File waits for the rest, and does not
// tell when the last progress was.
func take(f *os.File, b []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for {
			n, failed = syscall.Write(int(fd), b)
			if !errors.Is(failed, syscall.EINTR) {
				return !errors.Is(failed, syscall.EAGAIN)
			}
		}
	})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, err
	case err != nil:
		return 0, os.ErrClosed // it was closed meanwhile, which the poller says in words of its own
	case failed != nil:
		return 0, &os.PathError{Op: "write", Path: f.Name(), Err: failed}
	case n < len(b):
		return n, io.ErrShortWrite
	}
	return n, nil
}
