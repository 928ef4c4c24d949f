// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"time"

	"github.com/sallyport-dev/sallyport/internal/output"
)

// Limits bounds what a Result keeps of a command's output. Whatever they say,
// the whole output is heard and counted, and the command is never held back. The
// zero Limits keep the first and the last half MiB of each stream.
type Limits struct {
	// Bytes is how much is kept of each stream; 0 is 1 MiB, negative is nothing.
	Bytes int
	// Lines, if positive, is how many lines are kept of each stream, where Bytes is
	// not used up before. It implies HeadOnly.
	Lines int
	// HeadOnly keeps the beginning only; false keeps both ends.
	HeadOnly bool
	// Unlimited keeps everything; memory grows with the output.
	Unlimited bool

	// Timeout is the time-out of a Cmd that has none; 0 is none.
	Timeout time.Duration
	// NoTimeout takes the time-out away, that of the Cmd too.
	NoTimeout bool
}

// SeedTimeout is the time-out that agents' exec tools give to a command which
// does not ask for another one.
const SeedTimeout = 10 * time.Second

// SeedLimits returns what the earliest public exec tool of Codex did: the first
// 10 240 bytes or 256 lines of each stream, whichever ends first, and 10 seconds.
func SeedLimits() Limits {
	seed := output.SeedLimit()
	return Limits{Bytes: seed.Bytes, Lines: seed.Lines, HeadOnly: true, Timeout: SeedTimeout}
}

// ShellToolLimits returns what the present shell tool of Codex does: the first
// MiB of each stream, and 10 seconds.
func ShellToolLimits() Limits {
	return Limits{Bytes: output.ShellToolLimit().Bytes, HeadOnly: true, Timeout: SeedTimeout}
}

// FullBufferLimits returns the limits for output that must be complete: everything
// is kept, and there is no time-out.
func FullBufferLimits() Limits { return Limits{Unlimited: true, NoTimeout: true} }

// capture returns the buffers for these limits.
func (l Limits) capture() *output.Capture {
	limit := output.Limit{Bytes: l.Bytes, Lines: l.Lines, HeadOnly: l.HeadOnly, Unlimited: l.Unlimited}
	if l.Bytes == 0 {
		limit.Bytes = output.DefaultBytes
	}
	return output.NewCapture(limit)
}

// timeout returns the time-out of a Cmd that asks for d; 0 is none.
func (l Limits) timeout(d time.Duration) time.Duration {
	switch {
	case l.NoTimeout:
		return 0
	case d > 0:
		return d
	}
	return l.Timeout
}
