// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonrpc speaks the dialect of JSON-RPC 2.0 that the exec-server protocol uses:
// messages without the member "jsonrpc", over lines or a WebSocket.
//
// Flow: a [Stream] carries whole messages ([Lines], [Accept], [Dial], [Pipe]). A [Conn] reads them one at a
// time with [Conn.Read], which decodes and checks them ([Decode]), and sends what [Request],
// [Response] and their like encode through a bounded queue ([Conn.Send]). A sender waits while
// the queue is full, so a peer that does not read slows down what it asked for and takes no
// memory.
//
// A message is checked as a whole before any part of it is used: its size, its depth, the
// number of its values, UTF-8, and that no object has a member twice, because two readers that
// take different ones disagree about what was said. The package knows no method.
package jsonrpc
