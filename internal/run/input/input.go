// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package input hands the input of a command on to the processes of its attempts.
package input

import (
	"io"
	"os"
)

// A Start is where the input of a command began.
type Start struct {
	again  bool // it can be given once more
	file   *os.File
	offset int64
}

// StartOf notes where an input begins; nil is none. What is read from a pipe is gone; the keys of a
// terminal are typed anew.
func StartOf(input io.Reader, terminal bool) Start {
	switch f := input.(type) {
	case nil:
		return Start{again: true}
	default:
		return Start{again: terminal}
	case *os.File:
		info, err := f.Stat()
		if err != nil {
			return Start{}
		}
		if info.Mode()&os.ModeCharDevice != 0 {
			return Start{again: true}
		}
		at, err := f.Seek(0, io.SeekCurrent)
		return Start{err == nil && info.Mode().IsRegular(), f, at}
	}
}

// Again reports whether the input can be given once more.
func (s *Start) Again() bool { return s.again }

// Rewind sets the input back to where it began. False means that it could not.
func (s *Start) Rewind() bool {
	if s.file == nil {
		return true
	}
	_, err := s.file.Seek(s.offset, io.SeekStart)
	return err == nil
}
