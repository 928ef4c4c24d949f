// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package synthdns

import (
	"encoding/binary"
	"errors"
)

// Numbers of DNS (RFC 1035, 6891, 8914, 9460).
const (
	headSize = 12

	typeA    = 1
	typeAAAA = 28
	typeOPT  = 41

	classIN = 1

	flagResponse  = 1 << 15
	maskOpcode    = 0xf << 11
	flagRecursion = 1 << 8 // desired; it is repeated
	flagAvailable = 1 << 7

	codeNone           = 0
	codeFormat         = 1 // FORMERR
	codeNoName         = 3 // NXDOMAIN
	codeNotImplemented = 4
	codeRefused        = 5

	optionExtended = 15 // EDNS: an extended error
	errorBlocked   = 15
)

// A query is what is read of a message.
type query struct {
	id       uint16
	flags    uint16
	question []byte // as it was sent, with its type and class
	name     string // its labels joined by dots, without the last dot; empty is the root
	kind     uint16
	class    uint16
	edns     bool // the client reads extended errors
}

// errNoQuery is a message that is not answered: too short, or itself an answer.
var errNoQuery = errors.New("no query")

// parse reads a query. Code is one for the answer; codeNone says that the query can be answered.
func parse(message []byte) (q query, code int, err error) {
	if len(message) < headSize {
		return q, 0, errNoQuery
	}
	field := func(n int) uint16 { return binary.BigEndian.Uint16(message[2*n:]) }
	q.id, q.flags = field(0), field(1)
	switch {
	case q.flags&flagResponse != 0:
		return q, 0, errNoQuery
	case q.flags&maskOpcode != 0:
		return q, codeNotImplemented, nil
	case field(2) != 1 || field(3) != 0 || field(4) != 0:
		return q, codeFormat, nil
	}
	name, rest, ok := parseName(message[headSize:])
	if !ok || len(rest) < 4 {
		return q, codeFormat, nil
	}
	q.name, q.kind, q.class = name, binary.BigEndian.Uint16(rest), binary.BigEndian.Uint16(rest[2:])
	rest = rest[4:]
	q.question = message[headSize : len(message)-len(rest)]
	// The one record that matters has the root as its name; others, such as signatures, come after it.
	q.edns = field(5) > 0 && len(rest) > 2 && rest[0] == 0 && binary.BigEndian.Uint16(rest[1:]) == typeOPT
	return q, codeNone, nil
}

// parseName reads a name as questions have it, without references to other parts of the message.
func parseName(b []byte) (name string, rest []byte, ok bool) {
	const most = 255 // bytes of a name on the wire
	text := make([]byte, 0, 64)
	for at := 0; at < len(b) && at < most; {
		n := int(b[at])
		at++
		switch {
		case n == 0:
			return string(text), b[at:], true
		case n > 63 || at+n > len(b):
			return "", nil, false
		}
		if len(text) > 0 {
			text = append(text, '.')
		}
		for _, c := range b[at : at+n] {
			if c == '.' {
				return "", nil, false // it would look like two labels
			}
			text = append(text, c)
		}
		at += n
	}
	return "", nil, false
}

// answer returns the message that answers a query. Addresses are of the type that was asked for.
func (q *query) answer(code int, blocked string, addresses ...[]byte) []byte {
	b := make([]byte, headSize, 512)
	put := func(n int, v uint16) { binary.BigEndian.PutUint16(b[2*n:], v) }
	put(0, q.id)
	put(1, flagResponse|flagAvailable|q.flags&(maskOpcode|flagRecursion)|uint16(code))
	if q.question != nil {
		put(2, 1)
		put(3, uint16(len(addresses)))
		b = append(b, q.question...)
	}
	for _, a := range addresses {
		const here = 0xc000 | headSize // the name of the question
		b = binary.BigEndian.AppendUint16(b, here)
		b = binary.BigEndian.AppendUint16(b, q.kind)
		b = binary.BigEndian.AppendUint16(b, classIN)
		b = binary.BigEndian.AppendUint32(b, lifetime)
		b = binary.BigEndian.AppendUint16(b, uint16(len(a)))
		b = append(b, a...)
	}
	if !q.edns {
		return b
	}
	binary.BigEndian.PutUint16(b[10:], 1)
	var option []byte
	if blocked != "" {
		option = binary.BigEndian.AppendUint16(option, optionExtended)
		option = binary.BigEndian.AppendUint16(option, uint16(2+len(blocked)))
		option = binary.BigEndian.AppendUint16(option, errorBlocked)
		option = append(option, blocked...)
	}
	const payload = 1232 // bytes that we read, in the place of the class
	b = append(b, 0)
	b = binary.BigEndian.AppendUint16(b, typeOPT)
	b = binary.BigEndian.AppendUint16(b, payload)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(option)))
	return append(b, option...)
}
