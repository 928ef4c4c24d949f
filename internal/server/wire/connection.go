// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// The pauses between two attempts to resume. The first attempt is made at once.
const (
	minPause     = 20 * time.Millisecond
	maxPause     = 2 * time.Second
	uselessPause = 100 * time.Millisecond
)

// run reads, and resumes the session, until that is not possible any more.
func (c *Client) run(conn *Conn) {
	defer close(c.over)
	for {
		useful, err := c.serve(conn)
		err = c.ended(err)
		c.detach(err, useful || !c.opts.Eager)
		if c.life.Err() == nil && !final(err) {
			conn, err = c.resume(err, useful)
		}
		if err != nil {
			c.fail(err)
			c.end(err) // requests of the server end
			return
		}
	}
}

// serve reads from a connection until its end, and reports whether a message came.
func (c *Client) serve(conn *Conn) (useful bool, err error) {
	life, end := context.WithCancel(c.life)
	defer end()
	defer conn.Close()
	slots := make(chan struct{}, maxRequests)
	var asked sync.Map // what ends the contexts of requests in progress, by their IDs
	for ; ; useful = true {
		m, err := conn.Read()
		if errors.Is(err, io.EOF) {
			return useful, errors.New("the server ended the connection")
		}
		if err != nil {
			return useful, err
		}
		if m.Kind == KindNotification && m.Method == MethodCancel {
			withdraw(&asked, m)
			continue
		}
		if m.Kind != KindRequest {
			if err := c.receive(m); err != nil {
				return useful, err
			}
			continue
		}
		select {
		case slots <- struct{}{}:
			ctx, cancel := context.WithCancel(life)
			asked.Store(m.ID, &cancel)
			c.work.Go(func() {
				defer func() { <-slots }()
				defer cancel()
				c.answer(ctx, conn, m)
				asked.CompareAndDelete(m.ID, &cancel) // the ID may be used again
			})
		default: // to wait would hold up the answers that requests may wait for
			c.refuse(conn, m.ID, &Error{Code: CodeInternal, Message: "too many requests at once"})
		}
	}
}

// withdraw ends the context of a request that the server has withdrawn.
func withdraw(asked *sync.Map, m *Message) {
	p, err := Decode[Canceled](m.Params)
	if err != nil {
		return
	}
	open, _ := asked.Load(p.ID)
	if cancel, ok := open.(*context.CancelFunc); ok {
		(*cancel)()
	}
}

// receive takes an answer or a notification. Others it ignores.
func (c *Client) receive(m *Message) error {
	switch {
	case m.Kind == KindResponse:
		c.answered(m.ID, answer{result: m.Result})
	case m.Kind == KindError && m.ID == Malformed():
		return &MalformedError{Err: m.Error} // of which request it is said is not known
	case m.Kind == KindError:
		c.answered(m.ID, answer{err: m.Error})
	case m.Kind == KindNotification && c.opts.OnNotify != nil:
		c.opts.OnNotify(m.Method, m.Params)
	case m.Kind == KindBinary:
		c.opts.OnBinary(m.Params)
	}
	return nil
}

// answer answers a request of the server.
func (c *Client) answer(ctx context.Context, conn *Conn, m *Message) {
	if c.opts.OnRequest == nil {
		c.refuse(conn, m.ID, &Error{Code: CodeNoMethod, Message: "this client answers no requests"})
		return
	}
	result, err := c.opts.OnRequest(ctx, m.Method, m.Params)
	var text []byte
	if err == nil {
		text, err = Response(m.ID, result)
	}
	var failure *Error
	switch {
	case err == nil:
		_ = conn.Send(text) // with the connection, the server's interest has ended
	case errors.As(err, &failure):
		c.refuse(conn, m.ID, failure)
	default:
		c.refuse(conn, m.ID, &Error{Code: CodeInternal, Message: err.Error()})
	}
}

// refuse answers a request of the server with an error.
func (c *Client) refuse(conn *Conn, id ID, e *Error) {
	if text, err := Failure(id, e); err == nil { // texts and numbers always encode
		_ = conn.Send(text)
	}
}

// resume connects again after a cut and resumes the session. It tries until it is known that the
// session is lost, or the time is over. The error tells what the last attempt met. After a
// connection that was not useful it waits first: a server may cut each one.
func (c *Client) resume(cut error, useful bool) (*Conn, error) {
	if c.opts.Resume < 0 {
		return nil, cut
	}
	ctx, cancel := context.WithTimeout(c.life, c.opts.Resume)
	defer cancel()
	first := uselessPause
	if useful {
		first = 0
	}
	timer := time.NewTimer(first)
	defer timer.Stop()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, c.ended(fmt.Errorf("the session was not resumed within %v: %w", c.opts.Resume, cut))
		}
		conn, server, err := c.open(ctx, c.Server().SessionID)
		switch {
		case err == nil:
			if c.opts.OnResume != nil {
				c.opts.OnResume()
			}
			waiting := c.attach(conn, server)
			c.work.Go(func() {
				for _, k := range waiting {
					_ = conn.Send(k.message) // the reader sees the end of a connection
				}
			})
			if c.life.Err() != nil {
				conn.Close() // Close has not seen it
			}
			return conn, nil
		case final(err):
			return nil, c.ended(fmt.Errorf("the session cannot be resumed: %w", err))
		case ctx.Err() == nil:
			cut = err
		}
		timer.Reset(pause/2 + rand.N(pause/2)) // clients of one server do not come all at once
	}
}

// open connects and makes a session, or resumes one.
func (c *Client) open(ctx context.Context, session string) (*Conn, *InitializeResult, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeTime, errSilent)
	defer cancel()
	dial := c.target.Dial
	if dial == nil {
		dial = func(ctx context.Context) (Stream, error) {
			return Dial(ctx, c.target.URL, c.target.Token, c.target.TLS)
		}
	}
	var stream Stream
	err := strict.Call("Dial", func() (err error) {
		stream, err = dial(ctx)
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, nil, err
	}
	conn := NewConn(stream)
	conn.Binary = c.opts.OnBinary != nil
	defer context.AfterFunc(ctx, conn.Close)()
	server, err := c.greet(conn, session)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, server, nil
}

// greet performs the handshake.
func (c *Client) greet(conn *Conn, session string) (*InitializeResult, error) {
	params, err := json.Marshal(Initialize{
		ClientName: c.opts.Name, ExtensionMethods: c.opts.Extensions, Approvals: c.opts.Approvals,
		BinaryOutput: c.opts.OnBinary != nil,
		// the server may not have seen yet that the connection before was cut
		Resume: session, TakeOver: session != "",
	})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the handshake: %w", err)
	}
	c.mu.Lock()
	c.last++
	id := Number(c.last)
	c.mu.Unlock()
	request, err := Request(id, "initialize", params, Trace{})
	if err != nil {
		return nil, err
	}
	ready, err := Notification("initialized", struct{}{})
	if err != nil {
		return nil, err
	}
	if err := conn.Send(request); err != nil {
		return nil, err
	}
	if c.opts.Eager {
		return new(InitializeResult), conn.Send(ready)
	}
	for {
		m, err := conn.Read()
		if err != nil {
			return nil, fmt.Errorf("no answer to the handshake: %w", err)
		}
		if m.ID != id || m.Kind == KindRequest {
			if err := c.receive(m); err != nil { // of the session, before the answer
				return nil, err
			}
			continue
		}
		if m.Kind == KindError {
			return nil, m.Error
		}
		server := new(InitializeResult)
		if err := json.Unmarshal(m.Result, server); err != nil {
			return nil, &MalformedError{Err: fmt.Errorf("the answer to the handshake is invalid: %w", err)}
		}
		if server.SessionID == "" || session != "" && server.SessionID != session {
			return nil, errSession
		}
		return server, conn.Send(ready)
	}
}
