// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package link carries connections of the exec-server protocol over messages that are sent at most once:
// between a client of nodes, such as a gateway, and a node.
//
// Each message is a frame of a channel, which the client chooses. A channel is a [Link], which is what a
// WebSocket connection is elsewhere, or one call with its answer. Data have numbers: where one is missing the
// link ends, and the exec-server's own resumption takes over. A sender has as many bytes on their way as its
// peer has given it credit for, so that one session that is not read takes neither the memory nor the
// connection of the others.
package link

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A kind is what a frame is.
type kind byte

const (
	kindOpen   kind = 1 + iota // client: begins a link; the body is JSON for the node
	kindData                   // a number (8 bytes) and parts of messages
	kindCredit                 // how many bytes the receiver of it may have sent since the begin (8 bytes)
	kindClose                  // ends a link; the body is why, as text, or empty for a proper end
	kindCall                   // client: JSON
	kindAnswer                 // node: JSON
	kindPing                   // node: is there a client that has this channel?
	kindPong                   // client: no text: it has
	kindLast   = kindPong
)

// The first bytes of a frame: its kind, and the number of its channel.
const frameHead = 1 + 8

// A frame is one message.
type frame struct {
	kind    kind
	channel uint64
	body    []byte
}

// errFrame says that a message is no frame.
var errFrame = errors.New("a message that is no frame")

func (f *frame) append(b []byte) []byte {
	b = append(b, byte(f.kind))
	b = binary.BigEndian.AppendUint64(b, f.channel)
	return append(b, f.body...)
}

// decodeFrame reads a frame, whose body is a part of data.
func decodeFrame(data []byte) (frame, error) {
	if len(data) < frameHead || kind(data[0]) < kindOpen || kind(data[0]) > kindLast {
		return frame{}, errFrame
	}
	return frame{kind(data[0]), binary.BigEndian.Uint64(data[1:]), data[frameHead:]}, nil
}

// A part of a message: its flags, its length (4 bytes) and so many bytes.
const (
	partHead = 1 + 4
	// flags
	partMore   = 1 // the message goes on with the next part
	partBinary = 2 // the message is none of JSON-RPC
)

// A part is one of a message.
type part struct {
	more, binary bool
	data         []byte
}

// size is how many bytes it has in a frame.
func (p part) size() uint64 { return uint64(partHead + len(p.data)) }

func appendPart(b []byte, p part) []byte {
	var flags byte
	if p.more {
		flags |= partMore
	}
	if p.binary {
		flags |= partBinary
	}
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.data))) //nolint:gosec // at most maxPiece
	return append(b, p.data...)
}

// decodeParts reads the body of kindData.
func decodeParts(body []byte) (number uint64, parts []part, err error) {
	if len(body) < 8 {
		return 0, nil, errFrame
	}
	number, body = binary.BigEndian.Uint64(body), body[8:]
	for len(body) > 0 {
		if len(body) < partHead {
			return 0, nil, errFrame
		}
		n := binary.BigEndian.Uint32(body[1:])
		if body[0] > partMore|partBinary || uint64(n) > uint64(len(body)-partHead) {
			return 0, nil, errFrame
		}
		end := partHead + int(n)
		parts = append(parts, part{body[0]&partMore != 0, body[0]&partBinary != 0, body[partHead:end:end]})
		body = body[end:]
	}
	if len(parts) == 0 {
		return 0, nil, errFrame
	}
	return number, parts, nil
}

// A ClosedError is why a link ended: its peer said so, or it was cut.
type ClosedError struct{ Why string }

func (e *ClosedError) Error() string { return e.Why }

// Unwrap has a cut be a connection that can be resumed.
func (e *ClosedError) Unwrap() error { return wire.ErrClosed }

func cut(format string, args ...any) error { return &ClosedError{fmt.Sprintf(format, args...)} }
