// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"iter"
	"regexp"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A host starts processes: a Runner, or a stand-in in tests of what depends on time.
type host interface {
	// start starts c, whose standard input is of the given kind. A *TooManyError
	// says that no more may run.
	start(ctx context.Context, c *sallyport.Cmd, stdin Stdin) (process, error)
	// most is how many may run at a time.
	most() int
}

// A process is what the tools need of a session.
type process interface {
	number() int
	args() []string
	dir() string
	running() bool

	write(p []byte) (int, error)
	closeInput() error
	interrupt(ctx context.Context) error
	resize(ctx context.Context, s sallyport.Size) error

	// await hands out what came since the last call of await, when one of the
	// conditions is met. With an error the reply may be nil; what it holds is
	// handed out all the same.
	await(ctx context.Context, u until) (*reply, error)
	// pieces hands out the output from its first byte to the end of ctx, beside await.
	pieces(ctx context.Context) iter.Seq2[piece, error]
	// wait blocks until the process has ended.
	wait(ctx context.Context) (*ending, error)
	// terminate ends the process and waits for its end. False: it had ended before.
	terminate(ctx context.Context) (bool, error)
	// close ends the process and frees what is kept of it.
	close() error
}

// A Reason says what ended a wait.
type Reason string

// The reasons.
const (
	Exited    Reason = "exited"     // the process ended
	Deadline  Reason = "deadline"   // the time was up
	Idle      Reason = "idle"       // nothing came for long enough
	Match     Reason = "match"      // the output matched
	Bytes     Reason = "bytes"      // so much had come
	InputWait Reason = "input_wait" // the program waits for input
	Password  Reason = "password"   // the same, and does not show it
	Closed    Reason = "closed"     // the streams are closed, and the process goes on
	Canceled  Reason = "canceled"   // the context ended
)

// until is what ends a wait.
type until struct {
	longest time.Duration
	input   bool
	bytes   int
	match   *regexp.Regexp
	quiet   time.Duration
}

// A reply is what came until a wait ended.
type reply struct {
	output output.Snapshot
	reason Reason
	end    *ending // nil while the process runs

	notices []string // about what was not kept
}

// ending is how a process ended.
type ending struct {
	code, signal   int
	denials        []sandbox.Denial
	denialsOmitted int
	sandboxed      bool // there was a sandbox that could refuse
	observed       bool // and it was seen what it refused
	notices        []string
}
