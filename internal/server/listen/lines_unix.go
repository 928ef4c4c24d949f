// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package listen

import (
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A lineListener accepts the clients of a unix socket that begin with a request of HTTP. Those that
// begin with a message are served as lines: both are this user's processes, and nothing has to be
// agreed.
type lineListener struct {
	net.Listener
	handler *handler
	http    chan net.Conn
	over    chan struct{} // closed when nothing is accepted any more
	err     error         // why; written before over is closed
}

// alsoLines returns a listener whose clients may send lines.
func (d *handler) alsoLines(l net.Listener) net.Listener {
	m := &lineListener{Listener: l, handler: d, http: make(chan net.Conn), over: make(chan struct{})}
	go m.accept()
	return m
}

func (l *lineListener) accept() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			l.err = err
			close(l.over)
			return
		}
		go l.serve(c)
	}
}

// serve looks at the first byte of a client.
func (l *lineListener) serve(c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(requestTime)) // an error is that of the next call
	first, err := peek(c)
	_ = c.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		_ = c.Close() // nothing was written
	case first != '{':
		select {
		case l.http <- c:
		case <-l.over:
			_ = c.Close()
		}
	default:
		leave := l.handler.enter()
		if leave == nil || l.handler.closed.Load() {
			_ = c.Close()
		} else {
			_ = l.handler.served.Serve(wire.LinesOn(c), "", nil) // there is no client left that wants to know
		}
		if leave != nil {
			leave()
		}
	}
}

// Accept implements net.Listener.
func (l *lineListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.http:
		return c, nil
	case <-l.over:
		return nil, l.err //nolint:wrapcheck // the HTTP server looks at its type
	}
}

// peek returns the first byte that a client has sent, which stays unread. It blocks until there is one.
func peek(c net.Conn) (first byte, err error) {
	for {
		outer, ok := c.(interface{ Unwrap() net.Conn })
		if !ok {
			break
		}
		c = outer.Unwrap()
	}
	own, ok := c.(syscall.Conn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	raw, err := own.SyscallConn()
	if err != nil {
		return 0, err
	}
	var buf [1]byte
	failed := raw.Read(func(fd uintptr) bool {
		var n int
		n, _, err = unix.Recvfrom(int(fd), buf[:], unix.MSG_PEEK)
		if err == nil && n == 0 {
			err = errors.New("the client has sent nothing")
		}
		return !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR)
	})
	return buf[0], errors.Join(failed, err)
}
