// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"time"

	"github.com/sallyport-dev/sallyport/internal/output"
)

// A Retention says how much of a command's output its Result keeps. Writers, events and
// counts get all of the output whatever it says, and the command is never held back.
// The zero Retention keeps the first and the last half MiB of each stream. A session keeps as many
// bytes in memory, of both streams, and hands over at most that many in one Reply: the first and the
// last half of them; there negative is the default as well.
type Retention struct {
	// Bytes is how much is kept of each stream; 0 is 1 MiB, negative is nothing.
	Bytes int
	// Lines, if positive, is how many lines are kept of each stream, unless Bytes is
	// reached before. It implies HeadOnly.
	Lines int
	// HeadOnly keeps the beginning only; false keeps both ends.
	HeadOnly bool
	// Unlimited keeps everything; memory grows with the output.
	Unlimited bool
}

// CodexTimeout is the time limit of [CodexExec] and [CodexShell].
const CodexTimeout = 10 * time.Second

// CodexExec returns a copy of c that retains output and limits time as the first public
// exec tool of Codex did: the first 10 240 bytes or 256 lines of each stream, whichever
// ends first, and 10 seconds unless c has a Timeout.
func CodexExec(c *Cmd) *Cmd {
	return c.compatible(Retention{Bytes: 10 << 10, Lines: 256, HeadOnly: true})
}

// CodexShell returns a copy of c that retains output and limits time as the shell tool
// of Codex does: the first MiB of each stream, and 10 seconds unless c has a Timeout.
func CodexShell(c *Cmd) *Cmd {
	return c.compatible(Retention{Bytes: 1 << 20, HeadOnly: true})
}

// CodexFullBuffer returns a copy of c that keeps all of the output and has no time
// limit, not even the Timeout of c.
func CodexFullBuffer(c *Cmd) *Cmd {
	full := *c
	full.Retention, full.Timeout = Retention{Unlimited: true}, 0
	return &full
}

func (c *Cmd) compatible(keep Retention) *Cmd {
	own := *c
	own.Retention = keep
	if own.Timeout == 0 {
		own.Timeout = CodexTimeout
	}
	return &own
}

// capture returns the buffers for a retention.
func (r Retention) capture() *output.Capture {
	limit := output.Limit{Bytes: r.Bytes, Lines: r.Lines, HeadOnly: r.HeadOnly, Unlimited: r.Unlimited}
	if r.Bytes == 0 {
		limit.Bytes = output.DefaultBytes
	}
	return output.NewCapture(limit)
}
