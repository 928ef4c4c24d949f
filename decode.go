// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"slices"

	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Plain returns the retained output as [Output.String] does, without the control sequences that programs print
// for a terminal: a carriage return and a newline are one newline, sequences that move the cursor become
// what separates words, and others nothing. Of a sequence that a reply or a gap cuts the end remains.
func (o Output) Plain() string { return text.WithoutControls(o.String()) }

// Decoded returns the retained output as text for reading, as [Output.String] does,
// except that it guesses the encoding of output that is not UTF-8. It knows common
// single-byte encodings of European languages, such as windows-1251, IBM866 and
// windows-1252, and judges by the letters that the output would contain. Where it
// recognizes none, or damaged UTF-8, the result is that of String.
//
// A guess turns a single stray byte into text and can be wrong, so use Decoded only
// for programs that do not print UTF-8. [Output.Bytes] has the bytes themselves.
func (o Output) Decoded() string {
	head, tail, omitted := wholeCharacters(o.kept)
	encoding := text.Guess(slices.Concat(head, tail))
	if encoding == nil {
		return o.String()
	}
	if omitted == 0 {
		return encoding.Decode(head)
	}
	return encoding.Decode(o.kept.Head) + output.Marker(o.kept.Omitted) + encoding.Decode(o.kept.Tail)
}
