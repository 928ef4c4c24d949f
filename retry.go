// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// widen asks, after an attempt that was denied something and failed, whether the command may be
// run again with the least that allows it. It gives the command what was approved. The error
// says that ctx has ended.
func (x *execution) widen(ctx context.Context, a *attempt) (again bool, err error) {
	if !x.repeats(a) {
		return false, nil
	}
	evidence, required := x.missing(a)
	if len(required) == 0 || x.runner.bars(required...) {
		return false, nil
	}
	x.opened = true
	q, err := x.question(approval.KindAccess, judge.Again(required), required)
	if err != nil {
		x.note("it was not run again: " + err.Error())
		return false, nil
	}
	q.Denials = evidence
	wanted, release := a.wanted(ctx)
	defer release()
	d, err := x.ask(wanted, x.approver(true), q)
	switch {
	case errors.Is(err, approval.ErrPass):
		return false, nil
	case wanted.Err() != nil && ctx.Err() == nil:
		x.note("it was not run again: the session was terminated while the question was open")
		return false, nil
	case err != nil:
		return false, err
	case !d.Approves():
		x.note("it was not run again: " + strings.Join(strings.Fields(d.Refusal()), " "))
		return false, nil
	}
	what := x.changed(q)
	if what == "" && !x.rewind() {
		what = "its input"
	}
	if what != "" {
		x.note("it was not run again: " + what + " changed while the question was open")
		return false, nil
	}
	if err := x.open(q.Requires); err != nil {
		x.note("it was not run again: " + err.Error())
		return false, nil // the first result stays, with the notice
	}
	x.runner.events.Emit(x.event(1, event.Retrying{Reason: "approved", Added: q.Requires}))
	return true, nil
}

// repeatable reports whether it can be attempted once more. It is false for a command whose input,
// output or descriptors were used: a session, unless it was sent nothing and its output goes on.
func (x *execution) repeatable() bool {
	return (!x.session || x.cmd.Retry && x.host.Local) && len(x.cmd.Files) == 0 && x.input0.Again() &&
		(x.queue == nil || x.queue.Hold())
}

// rewind sets the input back to where it began, for another attempt; false means that it is too late.
func (x *execution) rewind() bool {
	if x.again != nil {
		x.again()
	}
	return x.input0.Rewind()
}

// repeats reports whether it is asked about another attempt: never about one that
// went well or was stopped, or that was asked about while it ran.
func (x *execution) repeats(a *attempt) bool {
	return x.retry > judge.RetryNone && x.approver(true) != nil && x.attempts == 1 && !a.accesses.Asked() &&
		a.end == EndExited && a.exit.Code != 0 && a.spec.Policy.Mode() == sandbox.Managed && x.repeatable()
}

// wanted returns a context that ends with ctx, and when the owner of a session terminates it.
func (a *attempt) wanted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-a.stopped:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// missing returns the denials that are facts and matter, and what would allow them: the least
// grants, or leaving the sandbox where no grant helps and the judge lets that be asked.
func (x *execution) missing(a *attempt) (evidence []sandbox.Denial, required []string) {
	var wanted []sandbox.Grant
	for _, d := range facts(a.denials) {
		if d.NoGrant {
			continue
		}
		evidence = append(evidence, d)
		if gs, ok := sandbox.ParseGrants(d.Grant); ok {
			wanted = append(wanted, byHost(gs)...)
		}
	}
	if len(wanted) > 0 {
		return evidence, approval.Requirements(false, wanted)
	}
	if len(evidence) == 0 || x.retry < judge.RetryOutside {
		return nil, nil
	}
	return evidence, judge.Leaving(a.spec.Policy, x.runner.live.Policy())
}

// byHost returns grants with those of registries as their hosts, which is what policies grant.
func byHost(gs []sandbox.Grant) (out []sandbox.Grant) {
	for _, g := range gs {
		hosts := grants.Hosts(g.Name)
		for _, host := range hosts {
			out = append(out, sandbox.Grant{Addr: host})
		}
		if hosts == nil {
			out = append(out, g)
		}
	}
	return out
}

// facts returns the denials that are facts and matter.
func facts(denials []sandbox.Denial) []sandbox.Denial {
	return slices.DeleteFunc(slices.Clone(denials),
		func(d sandbox.Denial) bool { return !d.Source.Evidence() || d.Harmless != "" })
}

// outcome reports how the sandbox bore on a run, if it did.
func (x *execution) outcome(a *attempt) {
	o := event.SandboxOutcome{Initial: a.duration, Mode: a.spec.Policy.Name(), Level: a.exit.Sandbox.Level}
	denied := facts(a.denials)
	switch {
	case x.first != nil:
		o.Outcome, o.Initial, o.Escalated = event.OutcomeEscalated, x.first.Duration, a.duration
		denied = facts(x.first.denials)
	case a.end == EndTimedOut:
		o.Outcome = event.OutcomeTimedOut
	case a.end == EndSignaled:
		o.Outcome = event.OutcomeSignal
	case a.end == EndExited && a.exit.Code != 0 && len(denied) > 0:
		o.Outcome = event.OutcomeDenied
	default:
		return
	}
	o.Evidence = evidence(denied)
	x.emit(o)
}

// evidence lists how denials are known, each source once.
func evidence(denials []sandbox.Denial) (sources []sandbox.Source) {
	for _, d := range denials {
		sources = append(sources, d.Source)
	}
	slices.Sort(sources)
	return slices.Compact(sources)
}

// remember has a rule count for this Runner and its parents, and for later ones if Remember keeps it.
func (r *Runner) remember(prefix []string, amend func(*Runner) (*rules.Set, string, error)) error {
	var line string
	for at := r; at != nil; at = at.Parent {
		set, text, err := amend(at)
		if err != nil {
			return err
		}
		line = text
		at.mu.Lock()
		at.amended = set
		at.mu.Unlock()
	}
	return strict.Call("Remember", func() error { return r.Remember(slices.Clone(prefix), line) })
}
