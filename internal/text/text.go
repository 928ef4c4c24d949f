// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text turns the bytes that a command printed into text for people, models
// and wire clients.
//
// A [Splitter] cuts a live stream at the boundaries of characters. [Decode] makes
// valid UTF-8 of any bytes, and [Guess] finds the older encoding of bytes that are
// not UTF-8. [TruncateMiddle] and [FormatTruncated] shorten the text for a model.
// [SuspectDenied] infers from it that a sandbox denied something.
//
// The package is pure and keeps no state but that of a Splitter. It does not change
// bytes that are valid UTF-8, and guesses only in Guess and SuspectDenied.
//
// [Line], [Word] and their like show text that others chose, such as names of files, so that it moves
// no terminal, adds no line and hides nothing. What is not [Visible] is escaped as in Go source:
// control characters (C0, C1 and DEL), marks that turn or join text (bidirectional and zero-width
// ones), line and paragraph separators, fillers and variation selectors, and bytes that are not
// UTF-8. They leave text that they have returned as it is, so that a sentence may quote one that is
// escaped already.
//
// A [Screen] models a terminal, to show what a program that draws would show.
package text
