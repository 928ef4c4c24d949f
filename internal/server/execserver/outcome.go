// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// outcomeOf returns what a client is told of a process tree that has ended; nil where it did not ask. What
// opens a denial is found here, where the files are.
func (p *process) outcomeOf(exit *executor.Exit) json.RawMessage {
	if !p.tells || exit == nil {
		return nil
	}
	p.suggestions().Complete(exit.Denials)
	for i := range exit.Denials {
		d := &exit.Denials[i]
		d.NoGrant = d.NoGrant || d.Grant == "" // the client does not see the files, and would guess
	}
	text, _ := json.Marshal(wire.OutcomeOf(exit)) // words and numbers always encode
	return text
}

// suggestions finds what opens denials. Grants by name are none of the protocol.
func (p *process) suggestions() *reach.DeniedRun {
	host, _ := p.session.server.exec.Host(p.session.server.life) // it never fails on this machine
	return &reach.DeniedRun{
		Policy: p.spec.Policy, Dir: p.spec.Dir, Args: p.spec.Args, Env: p.spec.Env, OS: host.OS, Local: true,
		Caches:   !p.spec.NoCaches,
		Executor: &p.session.server.exec, Spec: p.spec,
	}
}

// awaitInput answers when the process waits for input, beside all other requests. A process that is not
// known has ended.
func (c *connection) awaitInput(id wire.ID, a *wire.Await) {
	p := c.process(a.ProcessID)
	if p == nil {
		c.answer(id, wire.AwaitResult{})
		return
	}
	c.beside(id, func(ctx context.Context) (any, error) {
		if p.input != nil {
			p.input.Settle(ctx) // what was accepted is not what it waits for
		}
		input, err := p.running.AwaitInput(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, os.ErrProcessDone):
			return wire.AwaitResult{}, nil
		case errors.Is(err, errors.ErrUnsupported):
			return wire.AwaitResult{Unknown: true}, nil
		}
		return wire.AwaitResult{Input: input}, err
	})
}

// confine has a process get what the request says beyond the protocol.
func confine(spec *executor.Spec, w *wire.Start, credential string) *wire.Error {
	if w.Confine == nil {
		return nil
	}
	w.Confine.Apply(spec, credential)
	if err := spec.Resources.Check(); err != nil {
		return invalid("confine: " + err.Error())
	}
	return nil
}
