// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listen runs the exec-server on a listener: standard input and output, or HTTP with
// WebSockets on a TCP port or a unix socket.
//
// [Run] checks the options, listens, prints the URL, and serves until its context ends, a
// signal comes or, on standard input, the client goes. Then it ends every process.
//
// It decides who may connect, and nothing else: a client that it lets in runs what it wants.
// So a port that other machines reach needs authentication, a web page (a request with the
// header Origin) is never let in, and a credential is compared in constant time.
//
// A process with an open question ([QuestionServer]) listens, too: on a unix socket in the state directory,
// which no command in a sandbox sees. It serves the methods question/* of the exec-server there, for
// processes of the same user that are in no sandbox. [ListQuestions] asks all of them. An answer counts as if
// it were given on the terminal.
package listen
