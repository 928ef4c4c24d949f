// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire has the parameters, results and notifications of the exec-server protocol as
// values, and the file URIs in them.
//
// Each Decode function reads the parameters of one method. Members that it does not know are
// ignored, as the protocol demands; what it knows has the type and the presence that the
// protocol says, and null is absent only where that is allowed. Errors are one line in the words
// that clients of the protocol know. Results and notifications are for encoding/json.
//
// The package acts on nothing: it does not know which methods a server has.
//
// The dialect of JSON-RPC 2.0 is without the member "jsonrpc", over lines or a WebSocket. A [Stream]
// carries whole messages ([Lines], [Accept], [Dial], [Pipe]). A [Conn] reads them one at a time with
// [Conn.Read], which decodes and checks them ([DecodeMessage]), and sends what [Request], [Response] and
// their like encode through a bounded queue ([Conn.Send]). A sender waits while the queue is full,
// so a peer that does not read slows down what it asked for and takes no memory. A message is
// checked as a whole before any part of it is used: its size, its depth, the number of its values,
// UTF-8, and that no object has a member twice, because two readers that take different ones
// disagree about what was said.
package wire
