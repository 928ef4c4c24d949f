// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package tty

import (
	"os"

	"github.com/sallyport-dev/sallyport/executor"
)

// A Terminal does not exist on this system.
type Terminal struct{}

// Foreground reports whether f is a terminal: this system has no jobs.
func Foreground(f *os.File) bool { return Is(f) }

// Continue does nothing: on this system a program cannot stop output.
func Continue(*os.File) {}

// Keep returns a function that does nothing.
func Keep(*os.File) (restore func()) { return func() {} }

// Open returns [ErrUnsupported].
func Open(*os.File) (*Terminal, error) { return nil, ErrUnsupported }

// Raw returns [ErrUnsupported].
func (t *Terminal) Raw(bool) error { return ErrUnsupported }

// Lines returns [ErrUnsupported].
func (t *Terminal) Lines() error { return ErrUnsupported }

// Discard returns [ErrUnsupported].
func (t *Terminal) Discard() error { return ErrUnsupported }

// Suspend does nothing.
func (t *Terminal) Suspend() error { return nil }

// Resume does nothing.
func (t *Terminal) Resume() {}

// Sizes returns nil.
func (t *Terminal) Sizes() <-chan executor.Size { return nil }

// Read returns [ErrUnsupported].
func (t *Terminal) Read([]byte) (int, error) { return 0, ErrUnsupported }

// Close does nothing.
func (t *Terminal) Close() error { return nil }
