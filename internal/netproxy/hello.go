// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package netproxy

import "encoding/binary"

// maxHello is the most that is read to find the server name, in bytes with the heads of records.
const maxHello = 16 << 10

// Numbers of TLS.
const (
	recordHandshake = 22
	messageHello    = 1
	extensionName   = 0
	extensionECH    = 0xfe0d
	nameHost        = 0

	recordHead  = 5 // type, version, length
	messageHead = 4 // type, length
	maxRecord   = 16 << 10
)

// hello is what the first message of a TLS client says.
type hello struct {
	name string // the server name; empty if there is none
	ech  bool   // another hello is inside, encrypted, and its server name cannot be seen
}

// helloState says how far a hello was read.
type helloState uint8

const (
	helloPartial helloState = iota // more bytes are needed
	helloWhole
	helloBroken // it is none, or longer than maxHello
)

// parseHello reads the records that hold the first message of a TLS client. What follows it is
// ignored.
func parseHello(p []byte) (hello, helloState) {
	var message []byte
	for rest := p; ; {
		if len(rest) < recordHead {
			return hello{}, partialBelow(len(p))
		}
		size := int(binary.BigEndian.Uint16(rest[3:]))
		if rest[0] != recordHandshake || rest[1] != 3 || size == 0 || size > maxRecord {
			return hello{}, helloBroken
		}
		part := rest[recordHead:min(len(rest), recordHead+size)]
		message = append(message, part...)
		if len(message) >= messageHead {
			length := int(message[1])<<16 | int(message[2])<<8 | int(message[3])
			if message[0] != messageHello || length > maxHello {
				return hello{}, helloBroken
			}
			if len(message) >= messageHead+length {
				return parseHelloMessage(message[messageHead : messageHead+length])
			}
		}
		if len(part) < size {
			return hello{}, partialBelow(len(p))
		}
		rest = rest[recordHead+size:]
	}
}

// partialBelow is helloPartial as long as more may be read.
func partialBelow(n int) helloState {
	if n >= maxHello {
		return helloBroken
	}
	return helloPartial
}

// A cursor takes pieces off the front of a message. Once one is missing, it is broken.
type cursor struct {
	p      []byte
	broken bool
}

// take returns the next n bytes.
func (c *cursor) take(n int) []byte {
	if c.broken || n > len(c.p) {
		c.broken = true
		return nil
	}
	out := c.p[:n]
	c.p = c.p[n:]
	return out
}

// vector returns a piece that begins with its length in so many bytes.
func (c *cursor) vector(lengthBytes int) []byte {
	n := 0
	for _, b := range c.take(lengthBytes) {
		n = n<<8 | int(b)
	}
	return c.take(n)
}

// number returns the next 16 bits.
func (c *cursor) number() int {
	p := c.take(2)
	if p == nil {
		return -1
	}
	return int(binary.BigEndian.Uint16(p))
}

// parseHelloMessage reads a whole message. It is broken if an extension that counts is there
// twice, since readers differ in which one they believe.
func parseHelloMessage(message []byte) (hello, helloState) {
	const version, random = 2, 32
	c := &cursor{p: message}
	c.take(version + random)
	c.vector(1) // session
	c.vector(2) // ciphers
	c.vector(1) // compressions
	if !c.broken && len(c.p) == 0 {
		return hello{}, helloWhole // as clients before extensions wrote it
	}
	extensions := &cursor{p: c.vector(2)}
	if c.broken || len(c.p) > 0 {
		return hello{}, helloBroken
	}
	var h hello
	named := false
	for len(extensions.p) > 0 {
		kind, data := extensions.number(), extensions.vector(2)
		if extensions.broken {
			return hello{}, helloBroken
		}
		switch kind {
		case extensionName:
			var ok bool
			if h.name, ok = parseServerName(data); !ok || named {
				return hello{}, helloBroken
			}
			named = true
		case extensionECH:
			h.ech = true
		}
	}
	return h, helloWhole
}

// parseServerName reads the only name of a list.
func parseServerName(data []byte) (string, bool) {
	list := &cursor{p: data}
	names := &cursor{p: list.vector(2)}
	kind := names.take(1)
	name := names.vector(2)
	if list.broken || names.broken || len(list.p)+len(names.p) > 0 || kind[0] != nameHost || len(name) == 0 {
		return "", false
	}
	return string(name), true
}
