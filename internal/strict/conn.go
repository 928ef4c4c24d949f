// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"errors"
	"io"
)

// Conn returns a connection of the caller's without what would end this process: where is what it is called
// in the error when a method panics or ends its goroutine, and Read returns a number of bytes that is
// possible. A Write of less is an error.
func Conn(where string, c io.ReadWriteCloser) io.ReadWriteCloser { return &conn{where, c} }

type conn struct {
	where string
	c     io.ReadWriteCloser
}

func (c *conn) Read(p []byte) (n int, err error) {
	err = Call(c.where, func() (err error) { n, err = c.c.Read(p); return err })
	if n < 0 || n > len(p) {
		return 0, errors.New(c.where + " returned an impossible number of bytes from Read")
	}
	return n, err
}

func (c *conn) Write(p []byte) (n int, err error) {
	err = Call(c.where, func() (err error) { n, err = c.c.Write(p); return err })
	if err == nil && n != len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

func (c *conn) Close() error { return Call(c.where, func() error { return c.c.Close() }) }
