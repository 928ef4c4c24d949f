// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mcp serves judged commands to agents by the Model Context Protocol: on standard input and
// output, or over HTTP.
//
// It is an adapter on the table of runs of package runs. A tool call becomes a [runs.Request] or a method
// of a [runs.Run], and what that returns becomes an answer within a stated budget. What a client has to
// remember is in the arguments of its calls: the number of a run, a cursor, the ID of a question.
//
// Flow: [Server.ServeLines] or [Server.ServeHTTP] reads messages, the SDK hands a call to [Server.call],
// which reads its arguments and gives it to the function of its tool. exec has a [start], which outlives
// the call: a question about it may be answered later, and the call repeated.
//
// The package decides nothing about a command, and opens nothing: what a model chooses becomes flags of
// run that ask. It keeps no output.
package mcp
