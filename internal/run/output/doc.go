// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output retains what a process prints, and hands it on.
//
// A [Buffer] keeps the beginning and the end of a stream, because the beginning says
// what was started and the end says how it failed, and counts what it omits between. A
// [Capture] does so for both streams of a command and for the two together. A [Log] is
// the ordered record of a process that any number of readers use, each with an offset of
// its own; it is an [executor.Output]. A Log keeps the beginning and the end in memory
// and much more in a [File] of a [Store]. [Writers] hand output on to io.Writers.
//
// Flow: one goroutine writes to a Log or a Capture while a process runs. A byte goes to
// the file before it falls out of memory, so readers find every retained byte in one of
// the two, and no buffer lies between. Bytes that neither has are counted as missing.
//
// The package never refuses output and never lets a reader hold up the writer. It works
// on bytes and does not decode characters. It forces nothing to the disk, and a file does
// not outlive the process that owns it.
package output
