// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"io"
	"sync"
)

// Pipe returns the two ends of a connection in this process. A message that was written is read before the
// next one can be. The end of one is io.EOF for the other one.
func Pipe() (a, b Stream) {
	there, back := make(chan []byte), make(chan []byte)
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	return &pipe{there, back, over, end}, &pipe{back, there, over, end}
}

// pipe is an end of a Pipe.
type pipe struct {
	out  chan<- []byte
	in   <-chan []byte
	over chan struct{} // closed when it has ended
	end  func()
}

// Read implements Stream.
func (p *pipe) Read() ([]byte, error) {
	select {
	case m := <-p.in:
		return m, nil
	case <-p.over:
		return nil, io.EOF
	}
}

// Write implements Stream.
func (p *pipe) Write(message []byte) error {
	select {
	case p.out <- bytes.Clone(message):
		return nil
	case <-p.over:
		return ErrClosed
	}
}

// Close implements Stream.
func (p *pipe) Close() error {
	p.end()
	return nil
}
