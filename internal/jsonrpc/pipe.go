// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"bytes"
	"io"
	"sync"
)

// Pipe returns the two ends of a connection in memory. A Write waits for the Read of the other
// end. The Close of one end ends both: reads return io.EOF then, and writes io.ErrClosedPipe.
func Pipe() (Stream, Stream) {
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	a, b := make(chan []byte), make(chan []byte)
	return &pipe{in: a, out: b, over: over, end: end}, &pipe{in: b, out: a, over: over, end: end}
}

type pipe struct {
	in   <-chan []byte
	out  chan<- []byte
	over <-chan struct{}
	end  func()
}

func (p *pipe) Read() ([]byte, error) {
	select {
	case message := <-p.in:
		return message, nil
	case <-p.over:
		return nil, io.EOF
	}
}

func (p *pipe) Write(message []byte) error {
	select {
	case p.out <- bytes.Clone(message): // the reader owns it
		return nil
	case <-p.over:
		return io.ErrClosedPipe
	}
}

func (p *pipe) Close() error {
	p.end()
	return nil
}
