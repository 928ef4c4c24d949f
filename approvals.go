// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Approvals returns the approvals for the session that the Runner remembers, the oldest first.
func (r *Runner) Approvals() []approval.Remembered { return r.memory.List() }

// RevokeApproval forgets the approval that the request with an ID got. A command that runs keeps
// what it was given. The error is [approval.ErrNotRemembered].
func (r *Runner) RevokeApproval(id string) error { return r.memory.Revoke(id) }

// open gives the command what was approved.
func (x *execution) open(required []string) error {
	outside, grants := approval.Opened(required)
	x.runner.opens(required)
	if outside {
		policy, err := judge.Outside(x.asIs.policy, x.runner.live.Policy(), required)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrForbidden, err)
		}
		return x.confine(policy)
	}
	for _, g := range grants {
		if g.Opening != "" && !slices.Contains(x.allow, g.Opening) {
			x.allow = append(slices.Clone(x.allow), g.Opening)
		}
	}
	return x.confine(x.policy.With(grants...))
}

// authorize does what the judge decided: it asks where an approval is needed. It fixes the policy
// of the first attempt, or returns why the command does not run.
func (x *execution) authorize(ctx context.Context, d judge.Decision) error {
	required := d.Requires(x.cmd.AskFor)
	switch {
	case d.Err != nil:
		return fmt.Errorf("sallyport: nothing runs because the rules do not load: %w", d.Err)
	case d.Answer == judge.Forbid:
		return x.byRule(fmt.Errorf("%w: %s", ErrForbidden, d.Reason))
	}
	if err := x.runner.permits(required...); err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	if x.runner.Reviewer != nil {
		return x.review(ctx, d, required)
	}
	if d.Answer == judge.Ask {
		return x.approve(ctx, d, required)
	}
	if err := x.place(d); err != nil || d.Where == rules.Outside {
		return err
	}
	return x.reopen()
}

// reopen gives the command what was approved for the session, after it was denied before: it
// starts there, and does not fail once more. Paths that lead elsewhere now are asked about again. What a
// rule confines stays so.
func (x *execution) reopen() error {
	if x.confined != "" || len(x.runner.memory.List()) == 0 {
		return nil
	}
	granted, look, err := reach.Reopen(&x.runner.memory, x.identity(), x.look, x.opened)
	if err != nil {
		x.note("it starts without what was approved before: " + err.Error())
	}
	if _, err := judge.Outside(x.asIs.policy, x.runner.live.Policy(), granted); err != nil {
		// hosts may be denied by now
		granted = slices.DeleteFunc(granted, func(word string) bool { return word == approval.Outside })
	}
	x.look, x.opened = look, x.opened || len(granted) > 0
	return x.open(granted)
}

// strictReview is the reason for a question about a command that needs no approval.
const strictReview = "every command is reviewed (strict review); this one needs no approval, and runs with the policy %s, network %s"

// review is approve for strict review: it is asked about every command, and leaving the sandbox by a
// rule is a part of the question.
func (x *execution) review(ctx context.Context, d judge.Decision, required []string) error {
	if d.Answer == judge.Skip {
		d.Reason = fmt.Sprintf(strictReview, x.policy.Name(), x.policy.Network())
	}
	if d.Where == rules.Outside && x.policy.Mode() != sandbox.Full {
		required = []string{approval.Outside}
	}
	return x.approve(ctx, d, required)
}

// approver returns who is asked: in strict review the Reviewer first, and no one else where nothing
// but that needs an answer.
func (x *execution) approver(needed bool) approval.Approver {
	r := x.runner
	switch {
	case r.Reviewer == nil:
		return r.Approver
	case !needed:
		return approval.Reviewed(r.Reviewer, nil, true)
	}
	return approval.Reviewed(r.Reviewer, r.Approver, r.Approval.Known() != approval.Untrusted)
}

// approve asks whether the command may run, with what it requires.
func (x *execution) approve(ctx context.Context, d judge.Decision, required []string) error {
	approver := x.approver(d.Answer == judge.Ask)
	if approver == nil {
		return x.byRule(fmt.Errorf("%w: %s, and no approver is configured", ErrRefused, d.Reason))
	}
	x.opened = len(required) > 0 || d.Where == rules.Outside || x.policy.Mode() != sandbox.Managed
	q, err := x.question(approval.KindCommand, d.Reason, required)
	if err != nil {
		return x.byRule(fmt.Errorf("%w: %w", ErrRefused, err))
	}
	if rule := x.proposal(d); rule != nil && d.Answer == judge.Ask {
		q.Offers = append(q.Offers, approval.Offer{Answer: approval.ApprovedRule, Rule: rule})
	}
	answer, err := x.ask(ctx, approver, q)
	switch {
	case errors.Is(err, approval.ErrPass):
		return x.byRule(fmt.Errorf("%w: %s, and there is no one to ask", ErrRefused, d.Reason))
	case err != nil:
		return err
	case !answer.Approves():
		return x.byRule(fmt.Errorf("%w: %s: %s", ErrRefused, d.Reason, answer.Refusal()))
	}
	if what := x.changed(q); what != "" {
		return x.byRule(fmt.Errorf("%w: %s changed while the question was open; ask again", ErrRefused, what))
	}
	if err := x.place(d); err != nil {
		return err
	}
	if len(q.Requires) == 0 {
		return x.reopen()
	}
	return x.open(q.Requires)
}

// changed names what is not as it was when a question was made; empty if all is.
func (x *execution) changed(q *approval.Request) string {
	if slices.ContainsFunc(q.Requires,
		func(word string) bool { return reach.LeadsElsewhere(x.host.Local, word) != word }) {
		return "what a path leads to"
	}
	return x.look.Changed()
}

// question looks at this command and makes a request about it as it is now. The error says why it cannot
// be approved, or not for what would be opened.
func (x *execution) question(kind approval.Kind, reason string,
	required []string) (*approval.Request, error) {
	if x.cmd.Script != "" && x.host.Local {
		if err := x.reach().Decides("the shell", x.args[0]); err != nil {
			return nil, err
		}
	}
	x.look.Close()
	x.look = reach.TakeLook(x.identity(), x.opened)
	q := x.request(kind, reason, required, x.look.Identity)
	q.Files, q.Digest = x.look.Files, x.look.ProgramDigest()
	if x.look.Err != nil || !x.opened {
		return q, x.look.Err
	}
	return q, x.look.Writer()
}

// request makes a request about this command as it was looked at.
func (x *execution) request(kind approval.Kind, reason string, required []string,
	id reach.Identity) *approval.Request {
	x.mu.Lock()
	x.questions++
	number := x.questions
	x.mu.Unlock()
	required = slices.Clone(required)
	for i, word := range required {
		required[i] = reach.LeadsElsewhere(x.host.Local, word)
	}
	q := &approval.Request{
		ID: fmt.Sprintf("%s-%d", x.id, number), Kind: kind,
		Program: id.Program, Reason: reason, Requires: required, Runs: x.attempts, Key: id.Key(),
		Available: []approval.Answer{approval.Approved, approval.ApprovedForSession, approval.Denied,
			approval.Abort},
	}
	if x.runner.Reviewer != nil {
		q.Key, q.Available = "", []approval.Answer{approval.Approved, approval.Denied, approval.Abort}
	}
	x.show(q)
	return q
}

// ask is put for a question while no command runs: a signal that asks for the end ends it.
func (x *execution) ask(ctx context.Context, a approval.Approver,
	q *approval.Request) (approval.Decision, error) {
	ctx, stop := process.Interruptible(ctx, x.cmd.Signals, x.cmd.Ready,
		func(sig int) error { return &InterruptedError{sig} })
	defer stop()
	d, _, err := x.put(ctx, a, q)
	return d, err
}

// put puts a question to an approver, reports it and its answer, and remembers what is to be remembered. An
// error is [approval.ErrPass], or the end of ctx. Shared says that it is the answer to a question of
// another command. It may be called from several goroutines at once.
func (x *execution) put(ctx context.Context, a approval.Approver,
	q *approval.Request) (d approval.Decision, shared bool, err error) {
	x.emit(event.ApprovalRequested{Request: q})
	start := time.Now()
	d, shared, err = x.runner.memory.Ask(approval.WithReviews(reach.With(ctx, x.reach()), x.reviewed), a, q)
	switch {
	case ctx.Err() != nil:
		return d, shared, canceled(ctx)
	case errors.Is(err, approval.ErrPass):
		d = approval.Decision{Source: approval.FromConfig, Message: "there is no one to ask"}
	case err != nil:
		d = approval.Decision{Message: err.Error()}
	}
	if d.Source != approval.FromCache {
		d.Wait = time.Since(start)
	}
	if d.Source == "" {
		d.Source = approval.FromUser
	}
	decided := event.ApprovalDecided{ID: q.ID, Decision: d.Answer, Source: d.Source,
		WaitMS: d.Wait.Milliseconds(), Message: d.Message, Rule: d.Rule, Host: d.Host, Deny: d.Deny,
		Path:          d.Path,
		PolicyVersion: x.version, Evidence: evidence(q.Denials)}
	decided.Asked = q.Key != "" && d.Source != approval.FromCache && !errors.Is(err, approval.ErrPass)
	x.emit(decided)
	if errors.Is(err, approval.ErrPass) {
		return d, shared, err // and nothing was decided
	}
	x.mu.Lock()
	x.approvals = append(x.approvals, decided)
	x.mu.Unlock()
	if d.Answer == approval.ApprovedRule {
		err := x.runner.remember(d.Rule,
			func(at *Runner) (*rules.Set, string, error) { return at.rules().Amend(d.Rule) })
		if err != nil {
			x.note("the rule was not remembered: " + err.Error())
		}
	}
	return d, shared, nil
}

// note adds a warning.
func (x *execution) note(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.noted = append(x.noted, text)
}

// reviewed reports a review of a question. It is called while [execution.ask] waits.
func (x *execution) reviewed(r approval.Review) {
	if r.Status == approval.ReviewInProgress {
		x.emit(event.ReviewStarted{Review: r})
		return
	}
	x.emit(event.ReviewCompleted{Review: r})
}

// proposal is the rule that an approval can remember: one that has the judge ask no more, for a
// command about which no rule says anything.
func (x *execution) proposal(d judge.Decision) []string {
	if x.runner.Remember == nil || d.Rule != nil || d.Parts == nil || d.Parts.Opaque ||
		d.Wish == judge.Leave {
		return nil
	}
	prefix := x.cmd.PrefixRule
	if prefix == nil {
		for _, p := range d.Parts.Commands {
			if p.Rule == nil && !p.Safe {
				prefix = p.Argv
				break
			}
		}
	}
	if len(prefix) < 2 {
		return nil // a program alone is everything that it can do
	}
	set, _, err := x.runner.rules().Amend(prefix)
	if err != nil || x.requirement(set).Answer != judge.Skip {
		return nil
	}
	return slices.Clone(prefix)
}

// identity is what approvals rest on: the command as it was before anything was approved.
func (x *execution) identity() *reach.ApprovedCommand {
	return &reach.ApprovedCommand{
		Run: x.id, Environment: x.host.Environment, Local: x.host.Local,
		Args: x.args, Arg0: x.cmd.Arg0, Dir: x.dir, Env: x.asIs.env, Policy: x.asIs.policy,
		HostTmp: x.cmd.Tmp == "host", Allow: x.cmd.Allow,
		Shape: []any{x.cmd.Level, x.cmd.Tmp, x.cmd.NoCaches, x.cmd.NoObserver, x.cmd.ProtectHardLinks,
			x.cmd.OwnershipErrors, x.cmd.TTY != nil, x.host.OS, x.cmd.Stage != nil},
	}
}

// show writes into a question the words of the command and what its caller says about it.
func (x *execution) show(q *approval.Request) {
	q.Args, q.Script, q.Dir, q.Environment = x.args, x.cmd.Script, x.dir, x.host.Environment
	q.Arg0, q.Variables, q.Input = x.cmd.Arg0, x.chosen(), x.cmd.input()
	if q.Kind == approval.KindCommand {
		q.Justification = x.cmd.Justification
	}
}

// chosen returns the variables that the command does not have by being started here: its caller, or settings,
// chose them.
func (x *execution) chosen() []string {
	p := x.cmd.EnvPolicy
	return environ.Mask(slices.Sorted(func(yield func(string) bool) {
		for _, entry := range x.asIs.env {
			name, _, _ := strings.Cut(entry, "=")
			_, set := p.Set[name]
			named := slices.Contains(p.Named, name) && !slices.Contains(environ.Core(x.host.OS), name)
			own := slices.Contains(x.given, entry) && !slices.Contains(x.inherits, entry)
			if (set || named || own) && !yield(entry) {
				return
			}
		}
	}))
}

// input says what the standard input of the command is; empty for the null device, a terminal and a patch.
func (c *Cmd) input() string {
	f, isFile := c.Stdin.(*os.File)
	switch {
	case c.OpenStdin:
		return "what the caller sends while it runs"
	case c.Stdin == nil || isFile && f == nil || c.TTY != nil && !isFile: // a person types there
		return ""
	case !isFile:
		return "what the caller has given"
	}
	info, err := f.Stat()
	switch {
	case err != nil || info.Mode()&os.ModeCharDevice != 0:
		return ""
	case info.Mode().IsRegular():
		return "a file"
	}
	return "a pipe or socket"
}

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
