// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A lineTransport has a connection on which a canceled request has no answer, and whose end waits for the
// answers to what was asked before it.
type lineTransport struct {
	sdk.Transport
	ended func() // is called at the end of the input, and ends what goes on
	conn  *lineConnection
}

// Connect implements [sdk.Transport].
func (t *lineTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	t.conn = &lineConnection{Connection: c, ended: t.ended, asked: make(map[jsonrpc.ID]bool),
		none: make(chan struct{})}
	close(t.conn.none)
	return t.conn, err
}

// over reports whether the client has ended the connection.
func (t *lineTransport) over() bool {
	if t.conn == nil {
		return false
	}
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	return t.conn.eof
}

// A lineConnection is the connection of a lineTransport.
type lineConnection struct {
	sdk.Connection
	ended func()

	mu    sync.Mutex
	asked map[jsonrpc.ID]bool // requests without an answer; true for those that were canceled
	none  chan struct{}       // closed while there are none
	eof   bool
}

// Read implements [sdk.Connection].
func (c *lineConnection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if errors.Is(err, io.EOF) {
		c.ended()
		c.mu.Lock()
		c.eof = true
		none := c.none
		c.mu.Unlock()
		select {
		case <-none:
		case <-ctx.Done():
		}
		return nil, err
	}
	req, ok := m.(*jsonrpc.Request)
	if !ok || err != nil {
		return m, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case req.IsCall():
		if len(c.asked) == 0 {
			c.none = make(chan struct{})
		}
		c.asked[req.ID] = false
	case req.Method == "notifications/cancelled": //nolint:misspell // its name
		var p struct {
			RequestID any `json:"requestId"`
		}
		if json.Unmarshal(req.Params, &p) != nil {
			break
		}
		if id, err := jsonrpc.MakeID(p.RequestID); err == nil {
			if _, open := c.asked[id]; open {
				c.asked[id] = true
			}
		}
	}
	return m, nil
}

// Write implements [sdk.Connection].
func (c *lineConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	res, ok := m.(*jsonrpc.Response)
	if !ok {
		return c.Connection.Write(ctx, m)
	}
	c.mu.Lock()
	canceled := c.asked[res.ID]
	c.mu.Unlock()
	var err error
	if !canceled {
		err = c.Connection.Write(ctx, m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.asked[res.ID]; open {
		if delete(c.asked, res.ID); len(c.asked) == 0 {
			close(c.none)
		}
	}
	return err
}
