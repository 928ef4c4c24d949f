// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package input hands the input of a command on to the processes of its attempts.
package input

import (
	"errors"
	"io"
	"os"

	"github.com/sallyport-dev/sallyport/executor"
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

// Feed writes all of an input to p, and closes the input of p.
func Feed(p executor.Process, input io.Reader) {
	_, _ = io.Copy(writeOnly{p}, input)
	_ = p.CloseInput()
}

// writeOnly hides other methods of a process from io.Copy, and writes all.
type writeOnly struct{ p executor.Process }

func (w writeOnly) Write(b []byte) (int, error) {
	sum := 0
	for {
		n, err := w.p.Write(b[sum:])
		if sum += n; !errors.Is(err, io.ErrShortWrite) {
			return sum, err
		}
	}
}

// Keys are what is typed on the terminal of a command: one reader serves all of its attempts, so
// that a key which is read between two of them reaches the second.
type Keys struct {
	next chan executor.Process // the one that gets them from now on
	over chan struct{}         // closed at the end of the run
}

// Type begins to read keys. They reach the process that [Keys.Reach] named last. Close must be called;
// a Read that is blocked then is not waited for.
func Type(input io.Reader) *Keys {
	k := &Keys{make(chan executor.Process, 1), make(chan struct{})}
	go k.copy(input)
	return k
}

// Reach has what is typed reach p from now on.
func (k *Keys) Reach(p executor.Process) { k.next <- p }

// Close ends it. The nil Keys has ended.
func (k *Keys) Close() {
	if k != nil {
		close(k.over)
	}
}

// copy types what is read, until the end of the run or when a blocked Read returns after it.
func (k *Keys) copy(input io.Reader) {
	var buf [4 << 10]byte
	p := k.process()
	for p != nil {
		n, err := input.Read(buf[:])
		for rest := buf[:n]; p != nil && len(rest) > 0; {
			done, failed := writeOnly{p}.Write(rest)
			if rest = rest[done:]; failed != nil {
				p = k.process()
			}
		}
		for err != nil && p != nil {
			_ = p.CloseInput()
			p = k.process()
		}
	}
}

// process waits for the next process to type to; nil is the end.
func (k *Keys) process() executor.Process {
	select {
	case p := <-k.next:
		return p
	case <-k.over:
		return nil
	}
}
