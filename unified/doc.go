// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unified offers a Runner's sessions as the two tool calls that agents know
// from Codex: exec_command starts a command and answers with its end or with a
// number, and write_stdin writes to that number or asks what has come since.
//
// [Tools] is made of a Runner. A door that speaks to models turns the arguments of
// a call into a [Request] or a [WriteRequest], which refuse keys they do not
// know, and its [Response] into [Response.Text] or JSON. Limits, defaults, texts of
// errors and the layout of the answer are those of Codex, so that what models have
// learned holds. What is ours goes beyond it where that loses things or time:
//
//   - A terminal whose program waits for input answers at once instead of after the
//     whole yield, and says that it does. A caller can name more conditions.
//   - No output is lost between two calls, before a listener is there, or to a call
//     that is canceled, and a character that comes in two parts stays one.
//   - At the cap a start is refused with the list of what could be ended. Nothing
//     that runs is ended unless the owner chose [EvictLRU], and then it is told.
//   - What the sandbox refused is told with the response that has the exit code,
//     however fast or slow the command failed, and every beginning has an end event.
//
// The package starts nothing by itself and decides nothing about permission: that is
// the Runner's. It refuses to guess: a suspicion about the sandbox is labeled as one
// and never becomes an error.
package unified
