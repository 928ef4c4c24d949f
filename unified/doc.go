// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unified offers the sessions of a Runner as the two tool calls that agents know
// from Codex: exec_command starts a command and answers with its end or with a number,
// and write_stdin writes to that number or waits for its output.
//
// [Tools] is made of a Runner. A server for models decodes the arguments of a
// call into a [Request] or a [WriteRequest], which refuse unknown keys, and sends the
// [Response] as [Response.Text] or as JSON. Limits, defaults, error texts and the layout
// of the answer are those of Codex, so that models can use what they have learned. The
// package adds to it where Codex loses output or time:
//
//   - A terminal whose program waits for input answers at once instead of after the
//     whole yield, and says so. A request can name more conditions.
//   - No output is lost between two calls, before a listener exists, or by a call that is
//     canceled, and a character that comes in two parts stays one.
//   - At the session limit a start is refused with the list of what can be ended. Running
//     processes are ended for a new one only with [EvictLRU], and a notice says so.
//   - The response with the exit code has the sandbox's denials, however fast or slow the
//     command failed, and every Begin event has an End event.
//
// The package starts nothing by itself and decides nothing about permission; the Runner
// does. It labels a probable denial as such and never makes an error of it.
package unified
