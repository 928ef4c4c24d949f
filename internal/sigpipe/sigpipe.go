// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sigpipe listens for signals as [os/signal] does, for a program that begins
// with it.
//
// To have os/signal listen takes two threads, and two hand-overs between threads for
// each signal: for the nine that "sallyport run" forwards that was a seventh of the
// whole time of a short run. Here the kernel calls a few instructions that write the
// signal's number into a pipe, and one goroutine reads it.
//
// A signal must not be listened for in both ways at once: the later one hears it.
package sigpipe

import (
	"errors"
	"os"
)

// ErrUnsupported is the answer of [Notify] on systems that this package does not know.
// Use os/signal there.
var ErrUnsupported = errors.New("sigpipe: not on this system")

// Notify has signals sent to c, in order of their arrival, until stop is called, and
// listens when it returns. It never waits for c: a signal that finds it full is lost, as
// with os/signal. What this process ignores stays ignored. stop may be called twice.
//
// It returns [ErrUnsupported] where it knows nothing of the system, or why there is no
// pipe; then nothing is listened for.
func Notify(c chan<- os.Signal, signals ...os.Signal) (stop func(), err error) {
	return notify(c, signals)
}
