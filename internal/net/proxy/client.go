// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// The first bytes of SOCKS.
const (
	socks4 = 4
	socks5 = 5
)

// A client is one connection of the command.
type client struct {
	s    *Service
	conn net.Conn
	in   *patient      // conn, while a body is read or written
	r    *bufio.Reader // of in; every read goes through it, until a tunnel takes over
}

func newClient(s *Service, conn net.Conn) *client {
	c := &client{s: s, conn: conn, in: &patient{Conn: conn}}
	c.in.resume()
	c.r = bufio.NewReader(c.in)
	return c
}

// serve speaks the protocol that the first byte selects.
func (c *client) serve() {
	if c.s.origin != nil {
		c.serveRedirected()
		return
	}
	c.within(headTime)
	first, err := c.r.Peek(1)
	if err != nil {
		return
	}
	switch {
	case first[0] == socks5:
		c.serveSOCKS()
	case first[0] == socks4:
		const refused = 0x5b
		_ = c.write([]byte{0, refused, 0, 0, 0, 0, 0, 0})
	case first[0]|0x20 >= 'a' && first[0]|0x20 <= 'z':
		c.serveHTTP(c.forward)
	}
}

// within bounds the time of the reads that follow.
func (c *client) within(d time.Duration) { _ = c.conn.SetReadDeadline(time.Now().Add(d)) }

// write sends an answer of ours.
func (c *client) write(p []byte) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(answerTime))
	_, err := c.conn.Write(p)
	_ = c.conn.SetWriteDeadline(time.Time{})
	return err
}

// linger lets the client read its last answer: a connection that is closed while something of the
// client is unread is reset, and the answer lost.
func (c *client) linger() {
	half, ok := c.conn.(halfCloser)
	if !ok || half.CloseWrite() != nil {
		return
	}
	const most = 1 << 20
	c.within(lingerTime)
	_, _ = io.CopyN(io.Discard, c.r, most)
}

// halfCloser is a connection with two directions that end apart.
type halfCloser interface{ CloseWrite() error }

// ask has the command's decider decide. Without one, a request is denied.
func (s *Service) ask(ctx context.Context, r network.Request) network.Decision {
	if s.command.Ask == nil {
		return network.Decision{Ruling: network.Deny, Reason: network.NotAllowed,
			Source: network.BaselinePolicy}
	}
	return s.command.Ask(ctx, r)
}

// ask is that of the Service. A client that goes away meanwhile ends it.
func (c *client) ask(r network.Request) network.Decision {
	ctx, cancel := context.WithCancel(c.s.ctx)
	defer cancel()
	_ = c.conn.SetReadDeadline(time.Time{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.watch(cancel)
	}()
	d := c.s.ask(ctx, r)
	_ = c.conn.SetReadDeadline(time.Unix(1, 0))
	<-watched
	_ = c.conn.SetReadDeadline(time.Time{})
	return d
}

// watch calls gone when the client has closed the connection. What the client sends stays in the
// buffer; once that is full, watch returns.
func (c *client) watch(gone func()) {
	for c.r.Buffered() < c.r.Size() {
		if _, err := c.r.Peek(c.r.Buffered() + 1); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				gone()
			}
			return
		}
	}
}
