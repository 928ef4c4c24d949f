// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A badConn is a connection of a caller's that does something wrong.
type badConn struct {
	read  func([]byte) (int, error) // nil waits for Close
	write func([]byte) (int, error) // nil takes everything
	over  chan struct{}
	ended int
}

func (c *badConn) Read(p []byte) (int, error) {
	if c.read != nil {
		return c.read(p)
	}
	<-c.over
	return 0, io.EOF
}

func (c *badConn) Write(p []byte) (int, error) {
	if c.write != nil {
		return c.write(p)
	}
	return len(p), nil
}

func (c *badConn) Close() error {
	c.ended++
	if c.ended == 1 {
		close(c.over)
	}
	return nil
}

// TestDial: what Options.Dial and its connection do wrong is an error of the start, and does not end this
// process; the connection is closed once.
func TestDial(t *testing.T) {
	failure := errors.New("no way")
	panics := func([]byte) (int, error) { panic(failure) }
	for _, test := range []struct {
		name string
		dial func(*badConn) (io.ReadWriteCloser, error)
		want string
	}{
		{"error", func(*badConn) (io.ReadWriteCloser, error) { return nil, failure }, "no way"},
		{"nothing", func(*badConn) (io.ReadWriteCloser, error) { return nil, nil }, "Dial returned no connection"},
		{"panic", func(*badConn) (io.ReadWriteCloser, error) { panic(failure) }, "Dial panicked"},
		{"Goexit", func(*badConn) (io.ReadWriteCloser, error) { runtime.Goexit(); return nil, nil }, "Dial did not return"},
		{"end", func(c *badConn) (io.ReadWriteCloser, error) {
			c.read = func([]byte) (int, error) { return 0, io.EOF }
			return c, nil
		}, "no answer to the handshake"},
		{"panic in Read", func(c *badConn) (io.ReadWriteCloser, error) { c.read = panics; return c, nil }, "the connection of Dial panicked"},
		{"Goexit in Read", func(c *badConn) (io.ReadWriteCloser, error) {
			c.read = func([]byte) (int, error) { runtime.Goexit(); return 0, nil }
			return c, nil
		}, "the connection of Dial did not return"},
		{"panic in Write", func(c *badConn) (io.ReadWriteCloser, error) { c.write = panics; return c, nil }, "no answer to the handshake"},
		{"too much from Read", func(c *badConn) (io.ReadWriteCloser, error) {
			c.read = func(p []byte) (int, error) { return len(p) + 1, nil }
			return c, nil
		}, "impossible number of bytes"},
		{"less than nothing from Read", func(c *badConn) (io.ReadWriteCloser, error) {
			c.read = func([]byte) (int, error) { return -1, nil }
			return c, nil
		}, "impossible number of bytes"},
		{"less than all from Write", func(c *badConn) (io.ReadWriteCloser, error) {
			c.write = func(p []byte) (int, error) { return len(p) - 1, nil }
			return c, nil
		}, "no answer to the handshake"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &badConn{over: make(chan struct{})}
			e := New(Options{Dial: func(context.Context) (io.ReadWriteCloser, error) { return test.dial(c) }})
			begin := time.Now()
			_, err := e.Start(t.Context(), &executor.Spec{Args: []string{"true"}, Dir: "/",
				Policy: sandbox.FullAccess()})
			if err == nil || !strings.Contains(err.Error(), test.want) || time.Since(begin) > 8*time.Second {
				// a handshake may take 10
				t.Errorf("%v after %v, want %q", err, time.Since(begin), test.want)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if c.ended > 1 {
				t.Errorf("closed %d times", c.ended)
			}
		})
	}
}
