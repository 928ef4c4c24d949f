// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
)

const (
	// maxHello is the most that is read to find the server name, in bytes with the heads of records.
	maxHello        = 16 << 10
	recordHandshake = 22
	extensionECH    = 0xfe0d
)

// errNoHello is the end of what is not the first message of a TLS client, or longer than maxHello.
var errNoHello = errors.New("no TLS")

// hello is what the first message of a TLS client says.
type hello struct {
	name string // the server name; empty if there is none
	ech  bool   // another hello is inside, encrypted, and its server name cannot be seen
}

// readHello reads the first message of a TLS client and returns all that it has read, which may be more
// than that. Package crypto/tls refuses a message that two readers could understand differently, such as
// one with an extension twice. The error is errNoHello or that of r.
func readHello(r io.Reader) (h hello, read []byte, err error) {
	c := &listening{r: r}
	found := false
	_ = tls.Server(c, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		h = hello{info.ServerName, slices.Contains(info.Extensions, extensionECH)}
		found = true
		return nil, errNoHello // nothing is to be answered
	}}).Handshake()
	switch {
	case found:
		return h, c.read, nil
	case c.err != nil:
		return hello{}, nil, c.err
	}
	return hello{}, nil, errNoHello
}

// A listening connection keeps what is read of it, and says nothing.
type listening struct {
	net.Conn // nil
	r        io.Reader
	read     []byte
	err      error // of r
}

// Read implements io.Reader.
func (l *listening) Read(p []byte) (int, error) {
	left := maxHello - len(l.read)
	if left == 0 {
		return 0, errNoHello
	}
	n, err := l.r.Read(p[:min(len(p), left)])
	l.read = append(l.read, p[:n]...)
	l.err = err
	return n, err
}

// Write implements io.Writer.
func (l *listening) Write(p []byte) (int, error) { return len(p), nil }
