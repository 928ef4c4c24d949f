// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"net"
	"net/http"
)

// A gather is a connection that makes one call of the system of several writes: the library makes
// some for one message. What it holds is written by the write that completes what was announced, so
// a message is never delayed, and a slow peer keeps only the library waiting.
type gather struct {
	net.Conn

	turn    chan struct{} // has a value while a goroutine uses what follows
	missing int           // bytes that were announced and have not come
	held    []byte
}

// maxHeld is how many bytes are held. It is what a connection keeps in memory.
const maxHeld = 2 * maxBatch

// expect announces n bytes. What others write meanwhile counts, too.
func (g *gather) expect(n int) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.missing = n
}

// Write writes p after what is held, or holds it when more was announced.
func (g *gather) Write(p []byte) (int, error) {
	g.turn <- struct{}{}
	defer func() { <-g.turn }()
	g.missing -= len(p)
	if g.missing > 0 && len(g.held)+len(p) <= maxHeld {
		g.held = append(g.held, p...)
		return len(p), nil
	}
	if err := g.flush(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes what is held, and p. The library closes the connection when that takes too long.
func (g *gather) flush(p []byte) error {
	var err error
	if len(g.held) == 0 {
		_, err = g.Conn.Write(p)
	} else {
		parts := net.Buffers{g.held, p}
		to := g.Conn
		if w, ok := to.(interface{ Unwrap() net.Conn }); ok {
			to = w.Unwrap() // what writes both at once; TLS has none
		}
		_, err = parts.WriteTo(to)
	}
	g.held = g.held[:0]
	return err
}

// A hijacker puts a gather between the library and the connection of a request.
type hijacker struct {
	http.ResponseWriter
	socket *socket
}

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.socket.out = &gather{Conn: conn, turn: make(chan struct{}, 1)}
	rw.Writer.Reset(h.socket.out)
	return h.socket.out, rw, nil
}
