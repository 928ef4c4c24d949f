// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"math"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// The numbers of the contract, as Codex has them. A yield is how long a call waits for
// output.
const (
	MinYield          = 250 * time.Millisecond // of every call
	MaxYield          = 30 * time.Second       // of a start and of a write
	MinPoll           = 5 * time.Second        // of a write without text
	MaxPoll           = 5 * time.Minute        // of a write without text, unless Tools.MaxPoll is set
	DefaultStartYield = 10 * time.Second       // of a start that names none
	// the least yield of a start on Windows, where programs start slowly
	windowsStartYield = 10 * time.Second

	DefaultOutputTokens = 10_000  // how much output a response shows by default
	fallbackTokens      = 2_500   // how much Codex shows at most for an unknown model: 10 000 bytes
	bufferBytes         = 1 << 20 // how much output of one call is kept
	bufferTokens        = bufferBytes / 4

	DefaultMaxProcesses = 64 // processes at a time
	DefaultWarnAt       = 60 // processes from which on a response warns
	ProtectedProcesses  = 8  // most recently used processes that are not evicted

	deltaBytes = 8192   // of one Delta at most
	maxDeltas  = 10_000 // of one process; later output is one gap
)

// denialGrace is how long after the end of a process a failure can still be told.
const denialGrace = 100 * time.Millisecond

// startYield returns how long a start waits that asks for d, on a system as GOOS names it.
// Zero means [DefaultStartYield].
func startYield(d time.Duration, system string) time.Duration {
	d = cmp.Or(d, DefaultStartYield)
	if system == "windows" {
		d = max(d, windowsStartYield)
	}
	return min(max(d, MinYield), MaxYield)
}

// writeYield returns how long a write of text waits that asks for d. Zero means
// [MinYield].
func writeYield(d time.Duration) time.Duration {
	return min(max(d, MinYield), MaxYield)
}

// pollYield returns how long a write without text waits that asks for d. Longest is the
// longest poll: zero means [MaxPoll], and less than [MinPoll] means that.
func pollYield(d, longest time.Duration) time.Duration {
	return min(max(d, MinPoll), max(cmp.Or(longest, MaxPoll), MinPoll))
}

// outputTokens returns how many tokens of output a response shows: as many as the caller
// asks for, at most as many as the policy of the model allows. Policy zero means
// [DefaultOutputTokens], or fallbackTokens, and negative means no limit.
func outputTokens(asked *int, policy int, compatible bool) int {
	tokens := DefaultOutputTokens
	if asked != nil {
		tokens = max(*asked, 0)
	}
	switch {
	case policy < 0:
		return tokens
	case policy == 0 && compatible:
		policy = fallbackTokens
	}
	return min(tokens, cmp.Or(policy, DefaultOutputTokens))
}

// tokenCount returns the estimated number of tokens in n bytes, rounded up.
func tokenCount(n uint64) int { return text.TokenCount(int(min(n, math.MaxInt))) }
