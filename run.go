// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Run runs a command to its end and returns what happened. A command that ran is
// a Result, whatever its exit code; an error means that it did not run, or that
// its end is not known. Both are returned when the run was cut short: by the end
// of ctx (the error wraps its cause) or by Close ([ErrClosed]). The command's
// whole tree is then ended as by a time-out, and the Result is what is known.
//
// Run returns when nothing of the command is left: neither a process, nor a
// goroutine that serves it, except one that is blocked in a Read of Cmd.Stdin or
// in a Write of a writer that gives no sign of life.
func (r *Runner) Run(ctx context.Context, c *Cmd) (*Result, error) {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	t, err := r.newTask(ctx, c)
	if err != nil {
		return nil, err
	}
	v := t.judge()
	if err := t.clear(v); err != nil {
		return t.conclude(nil, err)
	}
	a, err := t.try(ctx, t.choose())
	if err != nil && a == nil {
		return t.conclude(nil, err)
	}
	// Here the denials of the attempt would be cured by another one. What is
	// known of them so far are guesses, and a guess is never a reason to try again.
	return t.conclude(a, err)
}

// A verdict answers whether a command may run.
type verdict struct {
	decision string // one of event's constants
	reason   string
}

// judge decides without asking anybody. The owner of the Runner has chosen the
// policy, so whatever stays within it is allowed; what leaves it needs somebody's
// approval.
func (t *task) judge() verdict {
	v := verdict{decision: event.DecisionAllow}
	if t.cmd.Unsandboxed && t.policy.Mode() != sandbox.Full {
		v = verdict{event.DecisionPrompt, "it asks to run outside the sandbox"}
	}
	t.emit(event.Judged{Args: t.args, Dir: t.dir, Decision: v.decision, Reason: v.reason})
	return v
}

// clear turns a verdict into permission, or into the reason why there is none.
func (t *task) clear(v verdict) error {
	switch v.decision {
	case event.DecisionAllow:
		return nil
	case event.DecisionPrompt:
		return fmt.Errorf("%w: %s, and nobody can be asked yet", ErrRefused, v.reason)
	}
	return fmt.Errorf("%w: %s", ErrForbidden, v.reason)
}

// choose returns the narrowest policy that the clearance permits.
func (t *task) choose() sandbox.Policy { return t.policy }

// conclude reports the end of a run once, whatever it was.
func (t *task) conclude(a *attempt, err error) (*Result, error) {
	var res *Result
	if a != nil {
		res = t.result(a)
	}
	t.ended(res, err)
	return res, err
}
