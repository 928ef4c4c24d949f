// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A start is one of a process or a run, which is performed once if it has a key.
type start = runs.Start[*startAnswer]

// A startAnswer is what a start came to.
type startAnswer struct {
	session string // the ID of the one that has made it
	run     string // the ID of the run that it has started; empty for none
	result  any
	failure *wire.Error // in place of the result, of a start that is made anew when it is repeated
	size    int         // that of a result without a process or run
}

// Size implements [runs.StartAnswer].
func (a *startAnswer) Size() int {
	if a == nil || a.failure != nil {
		return runs.Forgotten
	}
	return a.size
}

// notRun returns the answer for a run that did not run, with its result. One that its client has given up is
// made anew.
func notRun(run string, res json.Marshaler, givenUp bool) *startAnswer {
	text, err := res.MarshalJSON()
	if err != nil {
		return &startAnswer{failure: &wire.Error{Code: wire.CodeInternal, Message: err.Error()}}
	}
	a := &startAnswer{result: wire.RunStartResult{RunID: run, Result: json.RawMessage(text)}, size: len(text)}
	if givenUp {
		a.size = runs.Forgotten
	}
	return a
}

// answerRun answers a request to start a run. ByID says that the answer is that of an earlier start, which
// the session has made with the same startId: then the run must still be known.
func (c *connection) answerRun(ctx context.Context, id wire.ID, a *startAnswer, byID bool) {
	switch {
	case (a == nil || a.run == "") && c.wasCanceled(ctx, id), a == nil:
		return
	case a.failure != nil:
		c.fail(id, a.failure)
		return
	case a.run != "":
		r, err := c.server.runs.Find(c.credential, a.run)
		if err == nil {
			r.Taken(c.life, 0, false, false)
		} else if byID {
			c.fail(id, runFailure(err))
			return
		}
	}
	c.answer(id, a.result)
}

// startAgain answers a start of a process that has the key of an earlier one, when that is over. It starts
// the process where that has started none.
func (c *connection) startAgain(id wire.ID, s *wire.Start, earlier *start) {
	if !c.admit(id) {
		return
	}
	session := c.session.id
	ctx, done := c.cancelable(id)
	c.work.Go(func() {
		defer c.reads.Add(-1)
		a, ok := earlier.Await(ctx)
		done()
		switch {
		case ok && a.session == session:
			c.answer(id, a.result)
		case ok:
			c.fail(id, elsewhere(a.session))
		case !c.wasCanceled(ctx, id):
			c.startAfterAll(id, s)
		}
	})
}

// startAfterAll starts a process as if the request had just come.
func (c *connection) startAfterAll(id wire.ID, s *wire.Start) {
	c.turn.Lock()
	defer c.turn.Unlock()
	if !c.over && c.session != nil {
		c.startProcess(id, s)
	}
}

// elsewhere returns the error for a start that another session has made.
func elsewhere(session string) *wire.Error {
	failure := refuse("a start with this idempotencyKey was made in session " + session)
	failure.Data, _ = json.Marshal(wire.Refusal{Reason: "started", Session: session}) // texts encode
	return failure
}

// admit asks Options.Admit for a start of a session. Leave is not nil, and is called once.
func (s *Server) admit(session string) (leave func(), failure *wire.Error) {
	if s.opts.Admit == nil {
		return func() {}, nil
	}
	leave, err := s.opts.Admit(session)
	switch {
	case err == nil && leave != nil:
		return leave, nil
	case err == nil:
		return func() {}, nil
	case errors.As(err, &failure):
		return nil, failure
	}
	return nil, refuse(err.Error())
}
