// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package pending

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
)

// The bounds of a connection.
const (
	maxCall  = 64 << 10 // bytes of a line to the listener
	maxReply = 32 << 20 // and of its answer: questions hold whole commands
	maxCalls = 16       // connections that are served at once
)

// patience is how long one end waits for the other. It is a variable for tests.
var patience = 2 * time.Second

// refusal is the reply with an error.
func refusal(err error) *reply {
	for word, is := range wordsOf {
		if errors.Is(err, is) {
			return &reply{Error: word}
		}
	}
	return &reply{Error: "invalid"}
}

// await returns when a question is open or settled.
func (p *Post) await(ctx context.Context, id string) {
	for settled := p.state(id); ; {
		changed := p.board.Changed()
		if slices.ContainsFunc(p.board.Pending(), func(r *approval.Request) bool { return r.ID == id }) {
			return
		}
		select {
		case <-changed:
		case <-settled:
			return
		case <-ctx.Done():
			return
		}
	}
}

// awaitAll is await for all questions that were announced.
func (p *Post) awaitAll(ctx context.Context) {
	p.mu.Lock()
	all := slices.Collect(maps.Keys(p.known))
	p.mu.Unlock()
	for _, id := range all {
		p.await(ctx, id)
	}
}

// perform does what a call asks for. It waits, until ctx ends, for questions that were announced
// and are not asked yet.
func (p *Post) perform(ctx context.Context, c *call) *reply {
	p.awaitAll(ctx)
	switch c.Do {
	case doAnswer:
		err := p.board.Answer(c.ID, approval.Decision{Answer: c.Decision, Message: c.Message, Source: approval.FromUser})
		switch {
		case errors.Is(err, approval.ErrNotOffered):
			return refusal(ErrNotOffered)
		case err != nil:
			return refusal(ErrUnknown)
		}
	case doForget:
		if p.Revoke(c.ID) != nil {
			return refusal(ErrUnknown)
		}
	default:
		return &reply{Pending: p.board.Pending(), Session: p.sessions()}
	}
	return &reply{}
}

// sessions returns what is remembered for the session.
func (p *Post) sessions() []Session {
	var out []Session
	for _, m := range p.Remembered() {
		out = append(out, Session{ID: m.Request.ID, Args: m.Request.Args, Dir: m.Request.Dir, Requires: m.Request.Requires, Time: m.Time})
	}
	return out
}
