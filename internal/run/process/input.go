// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"io"
	"os"
)

// A InputStart is where the input of a command began.
type InputStart struct {
	again  bool // it can be given once more
	file   *os.File
	offset int64
}

// InputStartOf notes where an input begins; nil is none. What is read from a pipe is gone; the keys of a
// terminal are typed anew.
func InputStartOf(input io.Reader, terminal bool) InputStart {
	switch f := input.(type) {
	case nil:
		return InputStart{again: true}
	default:
		return InputStart{again: terminal}
	case *os.File:
		info, err := f.Stat()
		if err != nil {
			return InputStart{}
		}
		if info.Mode()&os.ModeCharDevice != 0 {
			return InputStart{again: true}
		}
		at, err := f.Seek(0, io.SeekCurrent)
		return InputStart{err == nil && info.Mode().IsRegular(), f, at}
	}
}

// Again reports whether the input can be given once more.
func (s *InputStart) Again() bool { return s.again }

// Rewind sets the input back to where it began. False means that it could not.
func (s *InputStart) Rewind() bool {
	if s.file == nil {
		return true
	}
	_, err := s.file.Seek(s.offset, io.SeekStart)
	return err == nil
}
