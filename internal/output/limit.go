// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

// Limit says how much of a stream is kept. The zero Limit keeps nothing (and
// counts everything).
type Limit struct {
	// Bytes is the number of bytes kept; zero and negative keep none.
	Bytes int
	// Lines, if positive, stops keeping with this many newlines, the last of
	// them kept, when that comes before Bytes is used up. It implies HeadOnly.
	// Zero and negative are no limit on lines.
	Lines int
	// HeadOnly gives the whole budget to the beginning; false shares it between
	// both ends.
	HeadOnly bool
	// Unlimited keeps everything; the other fields are then not looked at.
	// Memory grows with the output.
	Unlimited bool
}

func (l Limit) headOnly() bool { return l.HeadOnly || l.Lines > 0 }

// DefaultBytes is what is kept of one stream unless something else is asked
// for, in bytes: 1 MiB, as much as the agents' own tools keep.
const DefaultBytes = 1 << 20

// DefaultLimit keeps both ends of a stream, [DefaultBytes] in all.
func DefaultLimit() Limit { return Limit{Bytes: DefaultBytes} }

// SeedLimit keeps the first 10 240 bytes or 256 lines of a stream, whichever
// ends first: the rule of the earliest public exec tools.
func SeedLimit() Limit { return Limit{Bytes: 10 * 1024, Lines: 256, HeadOnly: true} }

// ShellToolLimit keeps the first 1 MiB of a stream and loses its end: the rule
// of the present shell tool of Codex.
func ShellToolLimit() Limit { return Limit{Bytes: 1 << 20, HeadOnly: true} }

// FullBufferLimit keeps everything.
func FullBufferLimit() Limit { return Limit{Unlimited: true} }

// AggregateUpstream joins what was kept of standard output and standard error
// into one text of at most capBytes bytes, by the rule of Codex's shell tool:
// output first, then errors, so the order of arrival is lost. When the two do
// not fit, a third of the cap is set aside for output, errors take what they
// need of the rest, and what then is left goes to output again; beginnings are
// taken. A negative cap is no cap. The result is a new slice.
//
// It exists for the presets that reproduce that tool. Our own aggregate is
// [Captured.Combined].
func AggregateUpstream(stdout, stderr []byte, capBytes int) []byte {
	takeOut, takeErr := len(stdout), len(stderr)
	if capBytes >= 0 && takeOut+takeErr > capBytes {
		takeOut = min(len(stdout), capBytes/3)
		takeErr = min(len(stderr), capBytes-takeOut)
		takeOut += min(capBytes-takeOut-takeErr, len(stdout)-takeOut)
	}
	joined := make([]byte, 0, takeOut+takeErr)
	joined = append(joined, stdout[:takeOut]...)
	return append(joined, stderr[:takeErr]...)
}
