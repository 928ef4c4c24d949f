// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package safefile

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file for reading. Symbolic links are followed. It does not block. The
// error is an [*fs.PathError]: [ErrNotPlain] for anything else, or the system's. What takes
// the place of a file in the same moment is opened, and not read.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var f *os.File
	if info.Mode().IsRegular() {
		if f, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
			return nil, err
		}
		if info, err = f.Stat(); err == nil && info.Mode().IsRegular() {
			return f, nil
		}
		f.Close()
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotPlain}
}

// Read returns what a file begins with, which [Open] would open: as many bytes as most, and whether there
// are more.
func Read(path string, most int64) (text []byte, more bool, err error) {
	f, err := Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	text, err = io.ReadAll(io.LimitReader(f, most+1))
	if more = int64(len(text)) > most; more {
		text = text[:most]
	}
	return text, more, err
}

// ReadSystem is [os.ReadFile], for a file that only the system or this user writes.
func ReadSystem(path string) ([]byte, error) { return os.ReadFile(path) }

// Names returns 1: how many names a file has is looked at where it is closed to commands, on Linux.
func Names(*os.File) uint64 { return 1 }
