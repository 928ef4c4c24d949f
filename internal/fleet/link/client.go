// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
)

// A Transport sends messages at most once: a bus.Conn.
type Transport interface {
	// ID may be part of a subject, and is that of no other transport.
	ID() string
	// Account is that of the credentials; empty without any.
	Account() string
	Publish(subject string, data []byte) error
	Subscribe(subject string, receive func(subject string, data []byte)) (stop func(), err error)
	OnCut(cut, back func()) (stop func())
}

// A Client opens links to nodes and calls them. Make one with NewClient.
type Client struct {
	transport Transport
	operator  bool
	stops     []func()

	mu       sync.Mutex
	closed   bool
	channels map[uint64]*channel
	late     lateCloses
}

// A channel is a link, or a call, of a client.
type channel struct {
	to   Address
	link *Link                       // nil for a call
	done func(from Address, f frame) // of a call
}

// NewClient returns a Client. With operator it is one of a shared node, in the account of that. The caller
// must call Close.
func NewClient(t Transport, operator bool) (*Client, error) {
	c := &Client{transport: t, operator: operator, channels: make(map[uint64]*channel)}
	for _, subject := range c.downs() {
		stop, err := t.Subscribe(subject, c.receive)
		if err != nil {
			c.Close()
			return nil, err //nolint:wrapcheck // it says what failed
		}
		c.stops = append(c.stops, stop)
	}
	c.stops = append(c.stops, t.OnCut(c.cut, func() { go c.late.send(t) }))
	return c, nil
}

// errCut ends links when the connection to the hub is cut.
var errCut = cut("the connection to the hub was cut")

func (c *Client) cut() { go c.endLinks(func(Address) bool { return true }, errCut) }

// Links returns what ends the links to a node that there are now, and none that is opened later.
func (c *Client) Links(node Address) (end func(why error)) {
	return c.links(func(a Address) bool { return a == node })
}

func (c *Client) endLinks(match func(Address) bool, why error) { c.links(match)(why) }

func (c *Client) links(match func(Address) bool) (end func(why error)) {
	c.mu.Lock()
	var links []*Link
	for _, ch := range c.channels {
		if ch.link != nil && match(ch.to) {
			links = append(links, ch.link)
		}
	}
	c.mu.Unlock()
	return func(why error) {
		for _, l := range links {
			l.end(why, true)
		}
	}
}

// receive takes what a node sends.
func (c *Client) receive(subject string, data []byte) {
	a, ok := c.from(subject)
	f, err := decodeFrame(data)
	if !ok || err != nil {
		return
	}
	c.mu.Lock()
	ch := c.channels[f.channel]
	c.mu.Unlock()
	switch {
	case f.kind == kindPing:
		if ch != nil {
			_ = c.send(a, frame{kind: kindPong, channel: f.channel}) // the next ping comes
		} else {
			_ = c.send(a, frame{kind: kindClose, channel: f.channel, body: []byte("no such link")})
		}
	case ch == nil:
	case ch.link == nil:
		ch.done(a, f)
	case ch.to == a:
		ch.link.receive(f)
	}
}

func (c *Client) send(to Address, f frame) error { return c.publish(to, f.kind, f.append(nil)) }

// publish sends a frame. One that ends a link is sent later if it cannot be sent now.
func (c *Client) publish(to Address, k kind, data []byte) error {
	subject := c.up(to)
	err := c.transport.Publish(subject, data)
	if err != nil && k == kindClose {
		c.late.add(subject, data)
	}
	return err //nolint:wrapcheck // links say that they were cut
}

func (c *Client) add(ch *channel) (number uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, errCut
	}
	for number = rand.Uint64(); number == 0 || c.channels[number] != nil; {
		number = rand.Uint64()
	}
	c.channels[number] = ch
	return number, nil
}

func (c *Client) remove(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.channels, number)
}

// window is how many bytes may be on their way on one of the links.
func (c *Client) window() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return window(len(c.channels))
}

func window(links int) int { return max(minWindow, min(maxWindow, allWindows/max(links, 1))) }

// Open opens a link to a node; open, as JSON, says what for. It does not wait for the node.
func (c *Client) Open(to Address, open any) (*Link, error) {
	body, err := json.Marshal(open)
	if err != nil {
		return nil, fmt.Errorf("cannot open a link: %w", err)
	}
	ch := &channel{to: to}
	var number uint64
	ch.link = newLink(0, func(k kind, data []byte) error { return c.publish(to, k, data) }, c.window,
		func() { c.remove(number) })
	ch.link.mu.Lock() // nothing is received before the number is known
	number, err = c.add(ch)
	ch.link.channel = number
	ch.link.mu.Unlock()
	if err == nil {
		if err = c.send(to, frame{kindOpen, number, body}); err != nil {
			c.remove(number)
		}
	}
	if err != nil {
		return nil, cut("%v", err)
	}
	return ch.link, nil
}

// A CallError is what a node answers to a call that it does not perform.
type CallError struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (e *CallError) Error() string { return e.Message }

// A call is the body of kindCall, an answer that of kindAnswer.
type call struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

type answer struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  *CallError      `json:"error,omitempty"`
}

// Call calls a node and waits for its answer, until ctx ends. A node that is not there does not answer.
func (c *Client) Call(ctx context.Context, to Address, method string, params, result any) error {
	answered := make(chan answer, 1)
	number, err := c.request(c.up(to), method, params,
		func(a Address, got answer) {
			if a != to {
				return // another node answers for it
			}
			select {
			case answered <- got:
			default: // one answers
			}
		})
	if err != nil {
		return err
	}
	defer c.remove(number)
	select {
	case a := <-answered:
		switch {
		case a.Error != nil:
			return a.Error
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(a.Result, result); err != nil {
			return fmt.Errorf("the node %s answered in a wrong form: %w", to.Node, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the node %s did not answer: %w", to.Node, context.Cause(ctx))
	}
}

// Tell calls a node without waiting for an answer.
func (c *Client) Tell(to Address, method string, params any) {
	number, err := c.request(c.up(to), method, params, func(Address, answer) {})
	if err == nil { // else it does not hear it, as it may not in any case
		c.remove(number)
	}
}

// Ask calls all nodes of a scope, and has each called with what they answer, until stop.
func (c *Client) Ask(scope Scope, method string, params any, each func(Address, json.RawMessage)) (stop func(), err error) {
	number, err := c.request(scope.subject("ask", c.transport.ID()), method, params,
		func(a Address, got answer) {
			if got.Error == nil {
				each(a, got.Result)
			}
		})
	if err != nil {
		return nil, err
	}
	return func() { c.remove(number) }, nil
}

// request sends a call.
func (c *Client) request(subject, method string, params any, done func(Address, answer)) (uint64, error) {
	text, err := json.Marshal(params)
	if err == nil {
		text, err = json.Marshal(call{method, text})
	}
	if err != nil {
		return 0, fmt.Errorf("cannot call %s: %w", method, err)
	}
	number, err := c.add(&channel{done: func(a Address, f frame) {
		var got answer
		if f.kind == kindAnswer && json.Unmarshal(f.body, &got) == nil {
			done(a, got)
		}
	}})
	if err != nil {
		return 0, err
	}
	f := frame{kindCall, number, text}
	if err := c.transport.Publish(subject, f.append(nil)); err != nil {
		c.remove(number)
		return 0, errors.Join(errCut, err)
	}
	return number, nil
}

// Close ends all links and calls.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.endLinks(func(Address) bool { return true }, errCut)
	for _, stop := range c.stops {
		stop()
	}
}

// lateCloses are frames that end links and could not be sent while the connection was cut.
type lateCloses struct {
	mu     sync.Mutex
	frames []lateClose
}

type lateClose struct {
	subject string
	data    []byte
}

func (l *lateCloses) add(subject string, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames = append(l.frames, lateClose{subject, data})
}

// send sends them.
func (l *lateCloses) send(t Transport) {
	l.mu.Lock()
	frames := l.frames
	l.frames = nil
	l.mu.Unlock()
	for _, f := range frames {
		_ = t.Publish(f.subject, f.data) // else the peer's pings find out
	}
}
