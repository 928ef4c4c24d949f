// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text turns the bytes that a command printed into text for readers:
// people, models and wire clients.
//
// Flow: a [Splitter] cuts a live stream at the boundaries of characters;
// [Decode] makes valid UTF-8 of whatever was printed; [TruncateMiddle] and
// [FormatTruncated] make it short enough; [ModelText] is the report that a
// model reads. [SuspectDenied] guesses from that text whether a sandbox was in
// the way.
//
// The package is pure and keeps no state but that of a Splitter. It never
// changes bytes that are already valid, and it never guesses unless asked: the
// raw bytes stay the truth, and what is said about them here is for reading.
package text

import (
	"unicode/utf8"
)

// DecodeOptions says how bytes become text. The zero DecodeOptions is UTF-8 and
// nothing else.
type DecodeOptions struct {
	// Guess, for bytes that are not UTF-8, tries to find out in which of the
	// older encodings they were written; see GuessEncoding. False puts a
	// replacement character for what is no UTF-8. Guess is for users whose
	// locale is not UTF-8, because it makes text of a stray byte.
	Guess bool
}

// Decode returns b as valid UTF-8. Valid input comes back as it is. Otherwise
// every maximal part that is no character becomes one U+FFFD, or, with
// o.Guess and where an encoding can be told, b is decoded from that.
func Decode(b []byte, o DecodeOptions) string {
	if !o.Guess || utf8.Valid(b) {
		return lossy(b)
	}
	if c := guess(b); c != nil {
		return c.decode(b)
	}
	return lossy(b)
}
