// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/sallyport-dev/sallyport/executor"
)

// A taker takes input up to a number of bytes, and then fails.
type taker struct {
	executor.Process
	room   int // -1 for all
	err    error
	got    strings.Builder
	closed chan struct{}
}

func (p *taker) Write(b []byte) (int, error) {
	n := len(b)
	if p.room >= 0 && p.room < n {
		n = p.room
	}
	p.got.Write(b[:n])
	if p.room >= 0 {
		p.room -= n
	}
	if n < len(b) {
		return n, p.err
	}
	return n, nil
}

func (p *taker) CloseInput() error {
	close(p.closed)
	return nil
}

type panics struct{}

func (panics) Read([]byte) (int, error) { panic("no body") }

// counts is a reader that says it has read so many bytes, whatever there is room for.
type counts int

func (c counts) Read([]byte) (int, error) { return int(c), nil }

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

var errReset = errors.New("connection reset by peer")

// TestFailure: what keeps a part of the input from the command is known when the command sees the end
// of its input, and what ends input as usual is no failure.
func TestFailure(t *testing.T) {
	half := func() io.Reader { return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errReset)) }
	for _, test := range []struct {
		name  string
		input io.Reader
		room  int
		err   error // of the command's input
		got   string
		want  string // in the error; empty for none
	}{
		{"all", strings.NewReader("whole"), -1, nil, "whole", ""},
		{"the end with the last bytes", iotest.DataErrReader(strings.NewReader("whole")), -1, nil, "whole", ""},
		{"no input", iotest.ErrReader(io.EOF), -1, nil, "", ""},
		{"at once", iotest.ErrReader(errReset), -1, nil, "", "connection reset by peer"},
		{"in the middle", half(), -1, nil, "half", "connection reset by peer"},
		{"cut off", iotest.ErrReader(io.ErrUnexpectedEOF), -1, nil, "", "unexpected EOF"},
		{"a panic", panics{}, -1, nil, "", "Cmd.Stdin panicked"},
		{"no progress", nothing{}, -1, nil, "", "multiple Read calls return no data"},
		{"its reader was closed", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(os.ErrClosed)), -1, nil, "half", "file already closed"},
		{"its pipe was closed", iotest.ErrReader(io.ErrClosedPipe), -1, nil, "", "read/write on closed pipe"},
		{"its process is done", iotest.ErrReader(os.ErrProcessDone), -1, nil, "", "process already finished"},
		{"more than there is room for", counts(feedSize + 1), -1, nil, "", "cannot have read"},
		{"less than nothing", counts(-1), -1, nil, "", "cannot have read"},
		{"the command reads no more", half(), 2, io.ErrClosedPipe, "ha", ""},
		{"the command has ended", half(), 2, os.ErrProcessDone, "ha", ""},
		{"its input was closed", half(), 2, os.ErrClosed, "ha", ""},
		{"it cannot take it", half(), 2, errors.New("line too long"), "ha", "line too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &taker{room: test.room, err: test.err, closed: make(chan struct{})}
			f := Feed(p, test.input)
			<-p.closed
			check(t, f, p, test.got, test.want)
		})
	}
}

func check(t *testing.T, f *FeedFailure, p *taker, got, want string) {
	t.Helper()
	err := f.Err()
	if p.got.String() != got || (err == nil) != (want == "") || err != nil &&
		!strings.Contains(err.Error(), want) {
		t.Errorf("%q, %v; want %q and an error with %q", p.got.String(), err, got, want)
	}
}

// TestKeysFailure is TestFailure for what is typed.
func TestKeysFailure(t *testing.T) {
	for _, test := range []struct {
		name  string
		input io.Reader
		room  int
		err   error
		got   string
		want  string
	}{
		{"all", strings.NewReader("whole"), -1, nil, "whole", ""},
		{"in the middle", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errReset)), -1, nil, "half", "connection reset"},
		{"its reader was closed", iotest.ErrReader(os.ErrClosed), -1, nil, "", "file already closed"},
		{"more than there is room for", counts(feedSize), -1, nil, "", "cannot have read"},
		{"a line that is too long", strings.NewReader("whole"), 0, errors.New("line too long"), "", "line too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &taker{room: test.room, err: test.err, closed: make(chan struct{})}
			k := TypeKeys(test.input)
			k.Reach(p)
			<-p.closed
			check(t, &k.FeedFailure, p, test.got, test.want)
			k.Close()
		})
	}
	// A terminal that no process has open any more ends it without a failure: the second process gets
	// what comes next, here the end.
	gone := &taker{err: &os.PathError{Op: "write", Path: "tty", Err: syscall.EIO},
		closed: make(chan struct{})}
	next := &taker{room: -1, closed: make(chan struct{})}
	k := TypeKeys(strings.NewReader("x"))
	k.Reach(gone)
	k.Reach(next)
	<-next.closed
	if err := k.Err(); err != nil {
		t.Error(err)
	}
	k.Close()
	if err := (*FeedFailure)(nil).Err(); err != nil {
		t.Error(err)
	}
}
