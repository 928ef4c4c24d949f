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
//
// A [Client] is one session of a client, over one connection at a time, which [Connect] makes. One goroutine
// reads: it gives answers to the calls that wait for them, notifications to [ClientOptions.OnNotify] in
// their order, and requests of the server to [ClientOptions.OnRequest]. When the connection ends, the
// goroutine connects again and resumes the session. Calls of [Client.Repeat] are sent again then; those of
// [Client.Call] fail, because it is not known whether they were performed. When the session cannot be resumed
// in time, every call fails with a *[TransportError]. It knows the handshake and no other method.
package wire
