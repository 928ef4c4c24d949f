// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"errors"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// errCanceled is the cause of a context that a client ended with request/cancel.
var errCanceled = errors.New("the client canceled the request")

// cancels are the requests of a connection that a client can cancel: those that wait.
type cancels struct {
	mu   sync.Mutex
	open map[wire.ID]*waitingRequest
}

// A waitingRequest is one of them.
type waitingRequest struct{ cancel context.CancelCauseFunc }

// cancelable returns the context of a request that waits. It ends with the connection, and when the
// client cancels the request, until done is called; done may be called more than once. Of two
// requests with one ID, the newer one is canceled.
func (c *connection) cancelable(id wire.ID) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(c.life)
	r := &waitingRequest{cancel}
	c.cancels.mu.Lock()
	defer c.cancels.mu.Unlock()
	if c.cancels.open == nil {
		c.cancels.open = make(map[wire.ID]*waitingRequest)
	}
	c.cancels.open[id] = r
	return ctx, func() {
		c.cancels.mu.Lock()
		defer c.cancels.mu.Unlock()
		if c.cancels.open[id] == r {
			delete(c.cancels.open, id)
		}
		cancel(nil)
	}
}

// cancelRequest performs request/cancel. A request that does not wait, or not any more, goes on: its
// answer may be on its way.
func (c *connection) cancelRequest(m *wire.Message) error {
	p, err := wire.Decode[wire.Canceled](m.Params)
	if err != nil {
		return errors.Join(errProtocol, err)
	}
	c.cancels.mu.Lock()
	defer c.cancels.mu.Unlock()
	if r := c.cancels.open[p.ID]; r != nil {
		r.cancel(errCanceled)
	}
	return nil
}

// wasCanceled answers a request whose context the client ended, and reports whether it did.
func (c *connection) wasCanceled(ctx context.Context, id wire.ID) bool {
	if !errors.Is(context.Cause(ctx), errCanceled) {
		return false
	}
	c.fail(id, &wire.Error{Code: wire.CodeCanceled, Message: errCanceled.Error()})
	return true
}

// beside performs a request that waits, beside all others, and answers it with the result or the error. A
// perform that goes by its context is canceled by the client.
func (c *connection) beside(id wire.ID, perform func(ctx context.Context) (any, error)) {
	if !c.admit(id) {
		return
	}
	ctx, done := c.cancelable(id)
	c.work.Go(func() {
		defer c.reads.Add(-1)
		defer done()
		switch result, err := perform(ctx); {
		case err == nil:
			c.answer(id, result)
		case !c.wasCanceled(ctx, id) && c.life.Err() == nil:
			c.fail(id, runFailure(err))
		}
	})
}
