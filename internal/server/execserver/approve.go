// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	// answerTime is how long a client may take to answer a question: a person decides.
	answerTime = 10 * time.Minute
	// maxAsked is how many requests to a client have no answer, those that were withdrawn included.
	maxAsked = 1024
)

// The reasons why a client gave no answer.
var (
	errAskedEnd  = errors.New("its connection has ended")
	errAskedMany = fmt.Errorf("it has not answered %d questions", maxAsked)
	errAskedLong = errors.New("the question is too long for a message")
	errAskedTime = fmt.Errorf("it took longer than %v", answerTime)
)

// asked are the requests to a client that it has not answered. Their IDs are the server's own.
type asked struct {
	mu   sync.Mutex
	last int64
	open map[wire.ID]chan<- *wire.Message // each takes one
}

// begin makes the ID of a request, and the channel that gets its answer.
func (a *asked) begin() (wire.ID, <-chan *wire.Message, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.open) >= maxAsked {
		return wire.ID{}, nil, errAskedMany
	}
	if a.open == nil {
		a.open = make(map[wire.ID]chan<- *wire.Message)
	}
	a.last++
	id, answer := wire.Number(a.last), make(chan *wire.Message, 1)
	a.open[id] = answer
	return id, answer, nil
}

// end takes an answer, and reports whether it was asked for and is the first one.
func (a *asked) end(m *wire.Message) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := a.open[m.ID]
	if ok {
		delete(a.open, m.ID)
		answer <- m
	}
	return ok
}

// ask makes a request of the client and waits for its answer. The end of ctx withdraws a request: the
// client is told, and may still answer.
func (c *connection) ask(ctx context.Context, method string, params any) (*wire.Message, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the question: %w", err)
	}
	if len(text) > wire.MaxFrame-1<<10 {
		return nil, errAskedLong
	}
	id, answer, err := c.asked.begin()
	if err != nil {
		return nil, err
	}
	if text, err = wire.Request(id, method, text, wire.Trace{}); err != nil {
		return nil, err
	}
	if c.conn.Send(text) != nil {
		c.end() // what comes of it is no answer of the client, and is not remembered
		return nil, errAskedEnd
	}
	select {
	case m := <-answer:
		return m, nil
	case <-ctx.Done():
		if text, err := wire.Notification(wire.MethodCancel, wire.Canceled{ID: id}); err == nil {
			// a number always encodes
			_ = c.conn.Send(text)
		}
		return nil, context.Cause(ctx)
	case <-c.life.Done():
		return nil, errAskedEnd
	}
}

// approver asks the client about a run. All that is no answer denies; only a question that comes when
// the connection has ended already is left to others.
func (c *connection) approver(run string) approval.Approver {
	return approval.Func(func(ctx context.Context, r *approval.Request) (approval.Decision, error) {
		none := approval.Decision{Source: approval.FromUser}
		if c.life.Err() != nil {
			return none, approval.ErrPass
		}
		text, _, err := runs.Question(r)
		if err != nil {
			return none, noAnswer(err)
		}
		ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errAskedTime)
		defer cancel()
		m, err := c.ask(ctx, wire.MethodApprove, wire.RunApprove{RunID: run, Request: text})
		if err != nil {
			return none, noAnswer(err)
		}
		d, err := decision(m, r)
		if errors.Is(err, approval.ErrPass) {
			return none, err
		}
		if err != nil {
			return none, noAnswer(err)
		}
		return d, nil
	})
}

func noAnswer(why error) error { return fmt.Errorf("the client gave no answer: %w", why) }

// decision reads the answer to a question, by the rules for approver programs.
func decision(m *wire.Message, r *approval.Request) (approval.Decision, error) {
	var none approval.Decision
	if m.Error != nil {
		return none, fmt.Errorf("it has the error %q", text.Line(m.Error.Message))
	}
	said, err := wire.Decode[wire.RunApproval](m.Result)
	if err != nil {
		return none, err
	}
	if said.Decision == "none" {
		return none, approval.ErrPass
	}
	answer, err := answerWord(said.Decision)
	if err != nil {
		return none, err
	}
	d := r.DecideOn(answer, said.Path)
	d.Message, d.Source = said.Message, approval.FromUser
	if !r.Takes(&d) {
		return none, fmt.Errorf("the decision %s was not offered", answer)
	}
	return d, nil
}
