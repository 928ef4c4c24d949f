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
package text
