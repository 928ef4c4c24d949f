// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"sync"
	"time"
)

// WriteTime is how long the writing of one message may take. A peer that takes none for so
// long is gone, or stopped for good: its connection ends, and it can resume its session.
const WriteTime = time.Minute

// The bounds of a queue. One message may exceed queueBytes.
const (
	queueMessages = 128
	queueBytes    = 4 << 20
)

// A Stream carries messages. One goroutine reads and one writes at a time.
type Stream interface {
	// Read returns the next message, which belongs to the caller. It blocks until there is
	// one. The error is io.EOF when the peer sends no more.
	Read() ([]byte, error)
	// Write writes one message. It blocks until the peer's system took it.
	Write(message []byte) error
	// Close ends reads and writes. It may be called more than once.
	Close() error
}

// An Outgoing is a message to write.
type Outgoing struct {
	Data   []byte
	Binary bool // it is none of JSON-RPC

	late Late // what Data is made of when it is written, or nil
}

// A Late is a message that is encoded when its turn has come, into memory that is used again: large
// ones come faster than memory is freed.
type Late interface {
	// Append appends the message to b. It does not change afterwards.
	Append(b []byte) []byte
	// Size is about how many bytes that are.
	Size() int
}

// encoded holds the memory of late messages.
var encoded sync.Pool // of *[]byte

// A BatchStream is a Stream that writes several messages together, in their order, and binary ones.
type BatchStream interface {
	Stream
	// WriteBatch is Write for several messages. It delays none of them.
	WriteBatch(messages []Outgoing) error
}

// maxBatch is how many bytes of messages are written together, unless the Stream has a method MaxBatch.
const maxBatch = 16 << 10

// ErrClosed is returned by Send after the end of a connection.
var ErrClosed = errors.New("the connection is closed")

// A Conn sends and receives messages on a Stream. Read is for one goroutine, the other methods
// are for any.
type Conn struct {
	// Binary says that Read returns messages that cannot be JSON as KindBinary. It is set before
	// the first Read. False makes them malformed.
	Binary bool

	stream  Stream
	batch   BatchStream   // stream, or nil when it is none
	most    int           // bytes that are written together
	written chan struct{} // closed when the writer has returned

	mu      sync.Mutex
	changed sync.Cond // the queue has, or the connection has ended
	queue   []Outgoing
	size    int  // bytes in queue and on their way
	last    bool // no more is sent
	closed  bool
}

// NewConn returns a connection on s, which it owns. The caller must call Close.
func NewConn(s Stream) *Conn {
	c := &Conn{stream: s, most: maxBatch, written: make(chan struct{})}
	c.batch, _ = s.(BatchStream)
	if sized, ok := s.(interface{ MaxBatch() int }); ok {
		c.most = sized.MaxBatch()
	}
	c.changed.L = &c.mu
	go c.write()
	return c
}

// Read returns the next message. It blocks until there is one. After a *MalformedError the
// connection goes on; after every other error it is over.
func (c *Conn) Read() (*Message, error) {
	data, err := c.stream.Read()
	if err != nil {
		return nil, err
	}
	if c.Binary && len(data) > 0 && data[0] < firstByte {
		return &Message{Kind: KindBinary, Params: data}, nil
	}
	return DecodeMessage(data)
}

// firstByte is the lowest byte that JSON can begin with: a tab.
const firstByte = '\t'

// Send queues an encoded message, which it keeps. It blocks while the queue is full. It returns
// ErrClosed when the connection has ended; nil does not mean that the peer gets the message.
func (c *Conn) Send(message []byte) error { return c.send(Outgoing{Data: message}) }

// HasBinary reports whether the stream carries binary messages.
func (c *Conn) HasBinary() bool { return c.batch != nil }

// SendLate is Send for a message that is encoded later. For a binary one the stream must have them.
func (c *Conn) SendLate(message Late, binary bool) error {
	return c.send(Outgoing{Binary: binary, late: message})
}

// size is about how many bytes the message has.
func (m *Outgoing) size() int {
	if m.late != nil {
		return m.late.Size()
	}
	return len(m.Data)
}

func (c *Conn) send(message Outgoing) error {
	size := message.size()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && !c.last && (len(c.queue) >= queueMessages || c.size > 0 && c.size+size > queueBytes) {
		c.changed.Wait()
	}
	if c.closed || c.last {
		return ErrClosed
	}
	c.queue = append(c.queue, message)
	c.size += size
	c.changed.Broadcast()
	return nil
}

// write writes the queue until the connection ends.
func (c *Conn) write() {
	defer close(c.written)
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.closed && !c.last {
			c.changed.Wait()
		}
		if c.closed || len(c.queue) == 0 {
			c.mu.Unlock()
			return
		}
		messages, size := c.take()
		c.changed.Broadcast() // there is room
		c.mu.Unlock()
		err := c.writeAll(messages)
		clear(messages) // frees their bytes
		c.mu.Lock()
		c.size -= size
		c.closed = c.closed || err != nil
		closed := c.closed
		c.changed.Broadcast()
		c.mu.Unlock()
		if closed {
			_ = c.stream.Close() // Read ends as well
			return
		}
	}
}

// writeAll encodes and writes messages.
func (c *Conn) writeAll(messages []Outgoing) error {
	memory, ok := encoded.Get().(*[]byte)
	if !ok {
		memory = new([]byte)
	}
	defer encoded.Put(memory)
	b := (*memory)[:0]
	for i := range messages {
		if m := &messages[i]; m.late != nil {
			begin := len(b)
			b = m.late.Append(b)
			m.Data = b[begin:len(b):len(b)]
		}
	}
	*memory = b
	if c.batch != nil {
		return c.batch.WriteBatch(messages)
	}
	return c.stream.Write(messages[0].Data)
}

// take returns what is written next, and its size: the first of the queue, and those behind it that
// go with it. The queue has one.
func (c *Conn) take() (messages []Outgoing, size int) {
	n := 0
	for n < len(c.queue) && (n == 0 || c.batch != nil && size+c.queue[n].size() <= c.most) {
		size += c.queue[n].size()
		n++
	}
	messages = c.queue[:n:n]
	c.queue = c.queue[n:]
	return messages, size
}

// Finish takes no more messages and blocks until those in the queue are written, or the
// connection has ended.
func (c *Conn) Finish() {
	c.mu.Lock()
	c.last = true
	c.changed.Broadcast()
	c.mu.Unlock()
	<-c.written
}

// Leave writes what is queued, as Finish does, and ends the connection properly, where the stream
// has a way to: the peer knows then that nothing is missing. It blocks until the peer has confirmed
// that, or Close is called.
func (c *Conn) Leave() {
	c.Finish()
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if s, ok := c.stream.(leaver); ok && !closed {
		s.leave()
	}
	c.Close()
}

// A leaver is a Stream with a closing handshake.
type leaver interface {
	// leave ends the connection with the handshake. It blocks until that is over, or Close is called.
	leave()
}

// Close ends the connection and drops what is queued. It may be called more than once.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closed = true
	c.queue = nil
	c.changed.Broadcast()
	c.mu.Unlock()
	_ = c.stream.Close()
}
