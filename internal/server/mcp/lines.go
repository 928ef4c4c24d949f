// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A connection is one with a message a line. Unlike the one of the SDK, which ends with the first line
// that is no message, it answers such a line and goes on; a canceled request has no answer; and its end waits
// for the answers to what was asked before it.
type connection struct {
	stream wire.Stream
	ended  func() // is called at the end of the input, and ends what goes on
	read   chan input
	closed chan struct{}
	close  func() error
	queue  []jsonrpc.Message // that were read, and are not given to the SDK yet

	mu    sync.Mutex
	asked map[jsonrpc.ID]*asking // requests without an answer

	open  sync.WaitGroup // of requests whose answer is not written
	write sync.Mutex
	over  atomic.Bool // the client has ended the connection
}

// cancels is the method that cancels a request.
const cancels = "notifications/cancelled" //nolint:misspell // its name

// An input is what was read: a line, or why there is none.
type input struct {
	line []byte
	err  error
}

// An asking is a request without an answer.
type asking struct {
	canceled bool
	batch    *batch // that it came in; nil for none
}

// A batch collects the answers to the requests that came in one line. Revisions after 2025-03-26 have none.
type batch struct {
	open    int
	answers []json.RawMessage
}

func newConnection(in io.ReadCloser, out io.Writer, ended func()) *connection {
	c := &connection{stream: wire.ShortLines(in, out, maxMessage), ended: ended, read: make(chan input),
		closed: make(chan struct{}), asked: make(map[jsonrpc.ID]*asking)}
	c.close = sync.OnceValue(func() error {
		close(c.closed)
		return c.stream.Close()
	})
	go c.receive() // a read of standard input may not end with a close
	return c
}

// receive reads lines until there are no more.
func (c *connection) receive() {
	for {
		line, err := c.stream.Read()
		select {
		case c.read <- input{bytes.TrimSpace(line), err}:
		case <-c.closed:
			return
		}
		if err != nil && !errors.Is(err, wire.ErrTooLong) {
			return
		}
	}
}

// Connect implements [sdk.Transport].
func (c *connection) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID implements [sdk.Connection].
func (c *connection) SessionID() string { return "" }

// Close implements [sdk.Connection].
func (c *connection) Close() error { return c.close() }

// Read implements [sdk.Connection].
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	for len(c.queue) == 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.closed:
			return nil, io.EOF
		case got := <-c.read:
			switch {
			case errors.Is(got.err, wire.ErrTooLong):
				c.put(refusal(nil, jsonrpc.CodeInvalidRequest,
					fmt.Sprintf("the message has more than %d bytes", maxMessage)))
			case got.err != nil:
				if errors.Is(got.err, io.EOF) {
					c.finish(ctx)
				}
				return nil, got.err
			case len(got.line) > 0:
				c.take(got.line)
			}
		}
	}
	m := c.queue[0]
	c.queue = c.queue[1:]
	return m, nil
}

// finish waits, at the end of the input, for the answers to what was asked before.
func (c *connection) finish(ctx context.Context) {
	c.ended()
	c.over.Store(true)
	none := make(chan struct{})
	go func() {
		c.open.Wait()
		close(none)
	}()
	select {
	case <-none:
	case <-ctx.Done():
	}
}

// take queues the messages of a line, and answers what is none.
func (c *connection) take(line []byte) {
	if !json.Valid(line) || !utf8.Valid(line) {
		c.put(refusal(nil, jsonrpc.CodeParseError, "the line is not one JSON text in UTF-8"))
		return
	}
	if line[0] != '[' {
		if refused := c.accept(line, nil); refused != nil {
			c.put(refused)
		}
		return
	}
	b := &batch{open: 1} // until all of it is there
	empty := true
	for _, m := range strict.Members(line) {
		empty = false
		if refused := c.accept(m, b); refused != nil {
			b.answers = append(b.answers, refused)
		}
	}
	if empty {
		c.put(refusal(nil, jsonrpc.CodeInvalidRequest, "the batch is empty"))
		return
	}
	c.mu.Lock()
	all := b.add(nil)
	c.mu.Unlock()
	if all != nil {
		c.put(all)
	}
}

// accept queues a message, or returns the answer to what is none.
func (c *connection) accept(data []byte, b *batch) (refused []byte) {
	m, id, err := decode(data)
	if err != nil {
		return refusal(id, jsonrpc.CodeInvalidRequest, text.Line(shortened(err.Error(), maxFacts)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	req, ok := m.(*jsonrpc.Request)
	switch {
	case m == nil:
		return nil
	case !ok:
	case req.IsCall():
		if c.asked[req.ID] != nil {
			return refusal(id, jsonrpc.CodeInvalidRequest, "a request with this id has no answer yet")
		}
		c.open.Add(1)
		c.asked[req.ID] = &asking{batch: b}
		if b != nil {
			b.open++
		}
	case req.Method == cancels:
		var p struct {
			RequestID any `json:"requestId"`
		}
		if json.Unmarshal(req.Params, &p) != nil {
			break
		}
		if id, err := jsonrpc.MakeID(p.RequestID); err == nil && c.asked[id] != nil {
			c.asked[id].canceled = true
		}
	}
	c.queue = append(c.queue, m)
	return nil
}

// decode reads a message. Nil is an answer to nothing, which has no answer either. The ID is that of an
// invalid request, as far as it is known.
func decode(data []byte) (m jsonrpc.Message, id json.RawMessage, err error) {
	if data[0] != '{' {
		return nil, nil, errors.New("a message must be an object, not " + strict.TypeName(data))
	}
	members := map[string]json.RawMessage{}
	for key, value := range strict.Members(data) {
		name := string(key)
		if members[name] != nil {
			err = fmt.Errorf("the member %s is there twice", strict.Quote(name))
			if name == "id" {
				value = []byte("null") // it is not known which
			}
		}
		members[name] = value
	}
	if isID(members["id"]) {
		id = members["id"]
	}
	answers := members["method"] == nil && (members["result"] != nil || members["error"] != nil)
	switch {
	case answers && id == nil:
		return nil, nil, nil
	case err != nil:
	case string(members["jsonrpc"]) != `"2.0"`:
		err = errors.New(`the member "jsonrpc" must be "2.0"`)
	case !answers && (members["method"] == nil || members["method"][0] != '"'):
		err = errors.New(`the member "method" must be a string`)
	case id == nil && members["id"] != nil:
		err = errors.New(`the member "id" must be a string or a whole number`)
	default:
		m, err = jsonrpc.DecodeMessage(data)
	}
	if answers && err != nil { // who asked hears of it
		var v any
		_ = json.Unmarshal(id, &v) // it is valid
		asked, _ := jsonrpc.MakeID(v)
		return &jsonrpc.Response{ID: asked, Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: err.Error()}}, nil, nil
	}
	return m, id, err
}

// isID reports whether a JSON text is an ID: a string or a whole number that is read exactly.
func isID(value []byte) bool {
	const most = 1 << 53 // the SDK reads numbers as float64
	n, err := strconv.ParseInt(string(value), 10, 64)
	return bytes.HasPrefix(value, []byte(`"`)) || err == nil && n <= most && n >= -most
}

// refusal returns the answer to what is no message. Without an ID it is null.
func refusal(id json.RawMessage, code int, why string) []byte {
	return asJSON(map[string]any{"jsonrpc": "2.0", "id": id,
		"error": &jsonrpc.Error{Code: int64(code), Message: why}})
}

// put writes a message. A client that reads no more has no use for its error.
func (c *connection) put(data []byte) { _ = c.send(data) }

func (c *connection) send(data []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	return c.stream.Write(data)
}

// Write implements [sdk.Connection].
func (c *connection) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if res, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		a := c.asked[res.ID]
		delete(c.asked, res.ID)
		if a != nil {
			defer c.open.Done()
			if a.canceled {
				data = nil
			}
			data = a.batch.add(data)
		}
		c.mu.Unlock()
	}
	if data == nil {
		return err
	}
	return c.send(data)
}

// add adds an answer to a batch, if it is one; nil is none. It returns what is sent now: all after the last
// one.
func (b *batch) add(data []byte) []byte {
	if b == nil {
		return data
	}
	if data != nil {
		b.answers = append(b.answers, data)
	}
	if b.open--; b.open > 0 || len(b.answers) == 0 {
		return nil
	}
	return asJSON(b.answers)
}
