// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// A ClientTarget says which server a Client connects to.
type ClientTarget struct {
	URL   string      // ws://HOST:PORT, wss://HOST:PORT or unix:///PATH
	Token string      // sent as a bearer token; empty for none
	TLS   *tls.Config // for wss; nil means the roots of the system
	// Connect connects in place of URL, Token and TLS. It may be called again after a cut. Nil means
	// the URL.
	Dial func(context.Context) (Stream, error)
}

// ClientLines returns the Target.Dial for one that a caller wrote, whose connections carry one message a
// line; nil for nil.
func ClientLines(dial func(context.Context) (io.ReadWriteCloser, error)) func(context.Context) (Stream, error) {
	if dial == nil {
		return nil
	}
	return func(ctx context.Context) (Stream, error) {
		c, err := dial(ctx)
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return nil, errors.New("Dial returned no connection")
		}
		return LinesOn(strict.Conn("the connection of Dial", c)), nil
	}
}

// ClientOptions say how a Client behaves. Only Name is needed. The functions are called by the
// goroutine that reads: while one of them blocks, no answer arrives. They must not call Close.
type ClientOptions struct {
	Name       string // of the client, told to the server
	Extensions bool   // asks for the methods that are extensions
	Approvals  bool   // OnRequest answers run/approve
	// Resume is how long a session without a connection is tried to be resumed. Zero means one
	// minute, negative not at all.
	Resume time.Duration
	// Eager has Dial not wait for the answer of the server, so that Server returns nothing: for one that is
	// known to serve what is called. If it refuses, so are the calls, and the first ones that it did not
	// even answer the handshake for were not performed. Resume must be negative.
	Eager bool
	// OnNotify is called with each notification, in order. Params belong to it. Nil ignores them.
	OnNotify func(method string, params json.RawMessage)
	// OnBinary is called with each binary message, in order with notifications. The bytes belong to
	// it. Nil does not ask for output in such messages.
	OnBinary func(message []byte)
	// OnResume is called when the session was resumed, before the notifications of the new
	// connection: those that were sent meanwhile are lost. Nil is not called.
	OnResume func()
	// OnRequest answers a request of the server, in a goroutine of its own. Its context ends with
	// the connection, and when the server withdraws the request. An error that is no *jsonrpc.Error is
	// sent as an internal one. Nil refuses all requests.
	OnRequest func(ctx context.Context, method string, params json.RawMessage) (any, error)
}

const (
	// handshakeTime is how long connecting and the handshake may take together.
	handshakeTime = 10 * time.Second
	defaultResume = time.Minute
	// settleTime is how long the answer to a start that was canceled is waited for.
	settleTime = 10 * time.Second
	// maxRequests is how many requests of the server are answered at once.
	maxRequests = 64
)

// A Client is a session with a server. It is made by Dial. Its methods may be called from several
// goroutines at once.
type Client struct {
	target ClientTarget
	opts   ClientOptions
	life   context.Context // ends with Close
	end    context.CancelCauseFunc
	over   chan struct{} // closed when the reader has returned
	work   sync.WaitGroup

	mu     sync.Mutex
	conn   *Conn // nil while there is none
	server InitializeResult
	calls  map[int64]*call // that wait for an answer
	last   int64           // the ID of the last request
	err    error           // why there will be no connection any more; nil while there may be
}

// A call is a request that waits for its answer.
type call struct {
	id      int64
	message []byte
	repeat  bool
	sent    bool
	answer  chan answer // has room for one
}

type answer struct {
	result json.RawMessage
	err    error
}

// Connect connects to a server and makes a session. It blocks until that is done, ctx ends, or ten
// seconds have passed. The end of ctx later has no effect. The caller must call Close. The error is
// a *TransportError, which wraps a *jsonrpc.Error or a *jsonrpc.StatusError where the server
// refuses.
func Connect(ctx context.Context, target ClientTarget, opts ClientOptions) (*Client, error) {
	opts.Resume = cmp.Or(opts.Resume, defaultResume)
	c := &Client{target: target, opts: opts, over: make(chan struct{}), calls: make(map[int64]*call)}
	c.life, c.end = context.WithCancelCause(context.Background())
	conn, hello, err := c.open(ctx, "")
	if err != nil {
		c.end(ErrClientClosed)
		return nil, &TransportError{Err: err}
	}
	c.conn, c.server = conn, *hello
	go c.run(conn)
	return c, nil
}

// Server returns what the server said of itself and the session when they met last. Its Environment
// may be nil.
func (c *Client) Server() InitializeResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

// Done returns a channel that is closed when the session cannot be used any more.
func (c *Client) Done() <-chan struct{} { return c.over }

// Err returns why the session cannot be used any more, as a *TransportError; nil while it can.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return nil
	}
	return &TransportError{Err: c.err}
}

// Close ends the connection, and waits until no function of Options runs. The server keeps the
// session and its processes for a time. It may be called more than once.
func (c *Client) Close() error {
	c.end(ErrClientClosed)
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	<-c.over
	c.work.Wait()
	return nil
}

// Call performs a request and decodes its result, unless result is nil. It blocks until there is an
// answer or ctx ends, and while there is no connection. The error is a *jsonrpc.Error from the
// server, a *TransportError when the connection has ended, or the cause of ctx: the request may
// have been performed then. Only run/start is answered also after the end of ctx, which cancels it.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	return c.perform(ctx, method, params, result, false)
}

// Repeat is Call for a request that may be performed twice: after a cut it is sent again.
func (c *Client) Repeat(ctx context.Context, method string, params, result any) error {
	return c.perform(ctx, method, params, result, true)
}

func (c *Client) perform(ctx context.Context, method string, params, result any, repeat bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	k, conn, err := c.enter(method, params, repeat)
	if err != nil {
		return err
	}
	if conn != nil {
		_ = conn.Send(k.message) // the reader sees the end of a connection
	}
	var a answer
	select {
	case a = <-k.answer:
	case <-ctx.Done():
		a = c.giveUp(ctx, method, k)
	}
	if a.err != nil || result == nil {
		return a.err
	}
	if err := json.Unmarshal(a.result, result); err != nil {
		return fmt.Errorf("the server's answer to %s is invalid: %w", method, err)
	}
	return nil
}

// giveUp returns the answer for a call whose context has ended. A server of runs is told, so that nothing
// waits there any more; a start is then answered: with an error, or it came too late.
func (c *Client) giveUp(ctx context.Context, method string, k *call) answer {
	c.mu.Lock()
	settles := method == startRun && k.sent
	k.repeat = false // another connection would start it
	if !settles {
		delete(c.calls, k.id)
	}
	conn := c.conn
	c.mu.Unlock()
	if strings.HasPrefix(method, runMethods) && conn != nil {
		text, err := Notification(MethodCancel, Canceled{ID: Number(k.id)})
		if err == nil { // a number always encodes
			_ = conn.Send(text) // likewise
		}
	}
	if !settles {
		return answer{err: context.Cause(ctx)}
	}
	late := time.NewTimer(settleTime)
	defer late.Stop()
	var a answer
	select {
	case a = <-k.answer: // also when the connection ends
	case <-late.C:
		c.mu.Lock()
		delete(c.calls, k.id)
		c.mu.Unlock()
		return answer{err: &TransportError{Sent: true, Err: context.Cause(ctx)}}
	}
	var refused *Error
	if errors.As(a.err, &refused) && refused.Code == CodeCanceled {
		a.err = context.Cause(ctx)
	}
	return a
}

// enter adds a call. Conn is what to send its message on; nil while there is no connection.
func (c *Client) enter(method string, params any, repeat bool) (*call, *Conn, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot encode the parameters of %s: %w", method, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, nil, &TransportError{Err: c.err}
	}
	c.last++
	k := &call{id: c.last, repeat: repeat, sent: c.conn != nil, answer: make(chan answer, 1)}
	var trace Trace
	if p, ok := params.(*RunStart); ok {
		trace = p.Trace
	}
	if k.message, err = Request(Number(k.id), method, text, trace); err != nil {
		return nil, nil, err
	}
	if len(k.message) > MaxFrame {
		return nil, nil, ErrCallTooLong
	}
	c.calls[k.id] = k
	return k, c.conn, nil
}

// answered gives an answer to the call that waits for it. A call whose context has ended waits no
// more.
func (c *Client) answered(id ID, a answer) {
	n, ok := id.Int()
	c.mu.Lock()
	k := c.calls[n]
	if ok && k != nil {
		delete(c.calls, n)
	}
	c.mu.Unlock()
	if ok && k != nil {
		k.answer <- a
	}
}

// attach uses a new connection, and returns the calls to send on it.
func (c *Client) attach(conn *Conn, hello *InitializeResult) []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn, c.server = conn, *hello
	waiting := slices.SortedFunc(maps.Values(c.calls),
		func(a, b *call) int { return cmp.Compare(a.id, b.id) })
	for _, k := range waiting {
		k.sent = true
	}
	return waiting
}

// detach gives up a connection, and ends the calls that must not be repeated. Sent says that they may have
// reached the server.
func (c *Client) detach(cause error, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = nil
	for id, k := range c.calls {
		if k.sent && !k.repeat {
			delete(c.calls, id)
			k.answer <- answer{err: &TransportError{Sent: sent, Err: cause}}
		}
	}
}

// fail ends all calls, also later ones.
func (c *Client) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.conn = cause, nil
	for id, k := range c.calls {
		delete(c.calls, id)
		k.answer <- answer{err: &TransportError{Sent: k.sent, Err: cause}}
	}
}

// ended reports why a connection ended that err is from: Close, or err itself.
func (c *Client) ended(err error) error {
	if c.life.Err() != nil {
		return context.Cause(c.life)
	}
	return err
}

var errSession = errors.New("the server gave another session than the one that was asked for")
