// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// tryTime is how long the answer to a wrong token takes.
const tryTime = time.Second

// maxOpen is how many connections of a listener are open at once: those of clients, and those that have
// sent no request yet. Without it, a flood of them takes the descriptors that processes need.
func maxOpen(clients int) int { return 2 * clients }

// A boundedListener accepts so many connections at once as places has room for. Further ones are
// told so and closed.
type boundedListener struct {
	net.Listener
	places chan struct{} // holds a value for each open connection
}

func newBoundedListener(l net.Listener, most int) boundedListener {
	return boundedListener{l, make(chan struct{}, most)}
}

// Accept implements net.Listener.
func (l boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err //nolint:wrapcheck // the HTTP server looks at its type
		}
		select {
		case l.places <- struct{}{}:
			return placedConn{c, sync.OnceFunc(func() { <-l.places })}, nil
		default:
			const text = "too many connections\n"
			_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"+
				// a new socket has room for it
				"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
			_ = c.Close()
		}
	}
}

// A placedConn has a place of its listener until it is closed.
type placedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c placedConn) Close() error {
	defer c.leave()
	return c.Conn.Close() //nolint:wrapcheck // nothing is known about it here
}

// Unwrap returns the connection on which several buffers are written at once.
func (c placedConn) Unwrap() net.Conn { return c.Conn }

// A penalty makes clients with a wrong token wait.
type penalty struct {
	time    time.Duration
	waiting chan struct{} // holds a value for each client that waits
	over    chan struct{} // closed when none is to wait any more
}

// newPenalty returns one for so many clients that wait at once.
func newPenalty(most int) penalty {
	return penalty{tryTime, make(chan struct{}, most), make(chan struct{})}
}

// wait blocks until the time is over, or until end. It does not look at the client: one that
// leaves at once and comes back with the next guess has taken a place of the listener for as long.
func (p penalty) wait() {
	select {
	case p.waiting <- struct{}{}:
	case <-p.over: // end has taken the places for good
		return
	}
	defer func() { <-p.waiting }()
	timer := time.NewTimer(p.time)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.over:
	}
}

// end ends all waits and returns when they have ended. It is called once.
func (p penalty) end() {
	close(p.over)
	for range cap(p.waiting) {
		p.waiting <- struct{}{}
	}
}
