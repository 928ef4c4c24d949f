// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tty manages the terminal of the user of this process.
//
// [Open] takes a file that is a terminal ([Is]). [Terminal.Raw] passes every key on as it
// is typed, [Terminal.Lines] whole lines. [Terminal.Read] reads them, [Terminal.Sizes] reports
// changes of the size, and [Terminal.Close] restores the terminal. A process that is stopped
// and continued sets the modes again, because the shell has changed them meanwhile.
//
// Many processes share a terminal. So the package never changes the flags of a descriptor
// that it was given, which the shell has too, never changes the modes while another job is
// in the foreground, and restores only modes that it has changed.
//
// It does not know the pseudo-terminals of commands, nor the meaning of keys.
//
// [OpenPrompt] opens the controlling terminal, never standard input or output, for a question.
// [Prompt.Show] and [Prompt.Quote] show all that the question is about, page by page, and
// [Prompt.Ask] shows a line of choices and reads the answer. What was typed before that line was
// shown does not count. No answer, an end of file and a terminal that is gone are no. What others
// wrote is escaped, broken into lines that fit, and marked on each of them.
//
// A [Console] is the user's side of a run: keys and signals go to the command, when the command
// stops itself the whole job is stopped, and when the job continues, the command does.
package tty

import (
	"errors"
	"os"

	"golang.org/x/term"

	"github.com/sallyport-dev/sallyport/executor"
)

// ErrGone reports that the terminal was taken away: its window was closed, or its
// connection was lost.
var ErrGone = errors.New("the terminal is gone")

// ErrUnsupported reports that this system's terminals are not supported.
var ErrUnsupported = errors.New("terminals of this system are not supported; run without a terminal")

// Is reports whether f is a terminal. A nil f is not.
func Is(f *os.File) bool {
	is := false
	_ = control(f, func(fd uintptr) error { is = term.IsTerminal(int(fd)); return nil })
	return is
}

// Plain reports whether the terminal of the user takes no control sequences: TERM is "dumb", or empty.
// Where it is not set, the terminal is taken for a usual one.
func Plain() bool {
	term, set := os.LookupEnv("TERM")
	return term == "dumb" || set && term == ""
}

// SizeOf returns the size of the terminal f. Both members are zero if f is not a terminal,
// or one that does not know its size.
func SizeOf(f *os.File) executor.Size {
	var size executor.Size
	_ = control(f, func(fd uintptr) error {
		cols, rows, err := term.GetSize(int(fd))
		if err == nil && cols > 0 && rows > 0 {
			size = executor.Size{Cols: uint16(min(cols, 1<<16-1)), Rows: uint16(min(rows, 1<<16-1))}
		}
		return err
	})
	return size
}

// control makes a request about a file. Unlike [os.File.Fd] it does not switch the file to
// blocking mode.
func control(f *os.File, request func(fd uintptr) error) error {
	raw, err := f.SyscallConn() // an error for nil
	if err != nil {
		return err
	}
	var answer error
	if err := raw.Control(func(fd uintptr) { answer = request(fd) }); err != nil {
		return err
	}
	return answer
}
