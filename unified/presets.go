// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// codexTimeout is the time limit of [CodexExec] and [CodexShell].
const codexTimeout = 10 * time.Second

// CodexExec returns a copy of c that retains output and limits time as the first public
// exec tool of Codex did: the first 10 240 bytes or 256 lines of each stream, whichever
// ends first, and 10 seconds unless c has a Timeout.
func CodexExec(c *sallyport.Cmd) *sallyport.Cmd {
	return with(c, sallyport.Retention{Bytes: 10 << 10, Lines: 256, HeadOnly: true},
		cmp.Or(c.Timeout, codexTimeout))
}

// CodexShell returns a copy of c that retains output and limits time as the shell tool
// of Codex does: the first MiB of each stream, and 10 seconds unless c has a Timeout.
func CodexShell(c *sallyport.Cmd) *sallyport.Cmd {
	return with(c, sallyport.Retention{Bytes: 1 << 20, HeadOnly: true}, cmp.Or(c.Timeout, codexTimeout))
}

// CodexFullBuffer returns a copy of c that keeps all of the output and has no time
// limit, not even the Timeout of c.
func CodexFullBuffer(c *sallyport.Cmd) *sallyport.Cmd {
	return with(c, sallyport.Retention{Unlimited: true}, 0)
}

// with returns a copy of c that keeps so much and ends after so long.
func with(c *sallyport.Cmd, keep sallyport.Retention, limit time.Duration) *sallyport.Cmd {
	own := *c
	own.Retention, own.Timeout = keep, limit
	return &own
}
