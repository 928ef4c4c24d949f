// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// outcomeTime is how long an answer with the outcome of a process that has ended is waited for, where the
// message with it was lost.
const outcomeTime = 5 * time.Second

// told keeps what the server says of a process tree that has ended, if it can be read.
func (p *process) told(text json.RawMessage) {
	o := new(wire.Outcome)
	if len(text) == 0 || json.Unmarshal(text, o) != nil {
		return
	}
	p.mu.Lock()
	p.outcome = o
	p.mu.Unlock()
}

// complete adds to the exit what the server tells of the process tree. It reads what a cut has lost.
func (p *process) complete() {
	p.mu.Lock()
	asks := p.outcome == nil && p.can.ProcessConfine && p.err == nil && !p.gone
	p.mu.Unlock()
	if asks {
		ctx, cancel := context.WithTimeout(p.life, outcomeTime)
		var page wire.ReadResult
		// else it is not known
		_ = p.client.Repeat(ctx, "process/read", wire.Read{ProcessID: p.id, AfterSeq: math.MaxInt64}, &page)
		cancel()
		p.told(page.Outcome)
	}
	if p.outcome == nil {
		return
	}
	p.outcome.Complete(&p.exit)
	p.exit.Sandbox.Warnings = p.sandbox.Warnings
	if p.spec.OnDenied != nil {
		for i := range p.outcome.Denials {
			p.spec.OnDenied(p.exit.Denials[i])
		}
	}
}

// AwaitInput implements [executor.Process].
func (p *process) AwaitInput(ctx context.Context) (*executor.InputWait, error) {
	const method = "process/awaitInput"
	if !p.can.ProcessAwait {
		return nil, fmt.Errorf("this exec-server has no %s: %w", method, errors.ErrUnsupported)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(os.ErrProcessDone) })()
	var r wire.AwaitResult
	err := p.ask(ctx, method, wire.Await{ProcessID: p.id}, &r)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case r.Unknown:
		return nil, fmt.Errorf("the exec-server cannot tell by %s: %w", method, errors.ErrUnsupported)
	case r.Input == nil:
		return nil, os.ErrProcessDone
	}
	return r.Input, nil
}

// AwaitPort implements [executor.Process]: a port of a process there is not one that this machine reaches.
func (p *process) AwaitPort(context.Context, []int) (int, error) {
	return 0, fmt.Errorf("exec-server sessions do not tell the ports of a process: %w", errors.ErrUnsupported)
}
