// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tty looks after the terminal of the person in front of this process.
//
// Flow: [Open] takes a descriptor that is a terminal ([Is]). [Terminal.Raw] hands
// every key on as it is typed; [Terminal.Read] reads the keys, [Terminal.Sizes] tells
// about the window, and [Terminal.Close] ends all of it and leaves the terminal as it
// was found. A process that is stopped and goes on makes the terminal raw again, for
// the shell has not left it so.
//
// A terminal belongs to many processes at once. So the package never changes the flags
// of a descriptor that it was given, which the shell holds too, never changes the
// modes of a terminal while another job is in its foreground, and puts back nothing but
// the modes that it has changed. It refuses what it cannot undo.
//
// It knows neither the pseudo-terminals that are made for commands nor what the keys
// mean.
package tty

import (
	"errors"
	"os"

	"golang.org/x/term"
)

// ErrGone says that the terminal was taken away: its window was closed, or its
// connection was lost. Nothing more comes from it, and it shows nothing more.
var ErrGone = errors.New("tty: the terminal is gone")

// ErrUnsupported says that this system's terminals cannot be looked after.
var ErrUnsupported = errors.New("tty: terminals of this system are not supported yet; run without a terminal of its own")

// Size is that of a terminal, in characters. Zero means that it is not known.
type Size struct{ Cols, Rows uint16 }

// Is reports whether f is a terminal. A nil f is none.
func Is(f *os.File) bool {
	is := false
	_ = control(f, func(fd uintptr) error { is = term.IsTerminal(int(fd)); return nil })
	return is
}

// SizeOf returns the size of the terminal f. Both members are zero when f is no
// terminal, or one that does not know its size.
func SizeOf(f *os.File) Size {
	var size Size
	_ = control(f, func(fd uintptr) error {
		cols, rows, err := term.GetSize(int(fd))
		if err == nil && cols > 0 && rows > 0 {
			size = Size{Cols: clamp(cols), Rows: clamp(rows)}
		}
		return err
	})
	return size
}

func clamp(n int) uint16 { return uint16(min(n, 1<<16-1)) }

// control makes a request about a file, without the switch to blocking mode that
// [os.File.Fd] may bring.
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
