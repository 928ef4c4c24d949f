// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A call is a call of a tool.
type call struct {
	ctx  context.Context //nolint:containedctx // of the call
	req  *sdk.CallToolRequest
	args *arguments
	run  atomic.Pointer[runs.Run] // that the call is about, for its progress; nil for none
}

// handler returns the function that calls a tool.
func (s *Server) handler(t *tool) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		c := &call{ctx: ctx, req: req, args: read(t.Name, req.Params.Arguments, t.known)}
		if c.args.err != nil {
			return failed(c.args.err), nil
		}
		defer c.progress()()
		a, err := t.run(s, c)
		if err == nil {
			err = c.args.err
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return failed(err), nil
		}
		a.most = maxFacts + bytesPerToken*c.args.tokens()
		return a.result()
	}
}

// When a client that asks for it hears of a call.
const (
	firstProgress = time.Second
	nextProgress  = 4 * time.Second
)

// progress tells the client that the call goes on, where it asks for that, until end is called.
func (c *call) progress() (end func()) {
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(c.ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		began, timer := time.Now(), time.NewTimer(firstProgress)
		defer timer.Stop()
		for n := 1; ; n++ {
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			said := fmt.Sprintf("%d s", int(time.Since(began).Seconds()))
			if r := c.run.Load(); r != nil {
				if line := r.Info().LastLine; line != "" {
					said += ": " + text.Line(line)
				}
			}
			// a client that is gone ends the call
			_ = c.req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token,
				Progress: float64(n), Message: said})
			timer.Reset(nextProgress)
		}
	}()
	return func() {
		cancel()
		<-over
	}
}

// find returns the run that a call names.
func (s *Server) find(c *call) (*runs.Run, error) {
	id := c.args.session()
	if c.args.err != nil {
		return nil, c.args.err
	}
	r, err := s.runs.Find(owner, id)
	if err != nil {
		var own *runs.Error
		if errors.As(err, &own) && own.Reason == runs.Unknown {
			return nil, fmt.Errorf("unknown session_id %s; list shows the sessions", text.Word(shortened(id,
				80)))
		}
		return nil, err
	}
	c.run.Store(r)
	return r, nil
}
