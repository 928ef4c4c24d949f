// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/run/questions"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Runner runs commands. The zero Runner runs them on this machine, in the tightest
// sandbox, and refuses those that need an approval. Its methods may be called from
// several goroutines at once; its fields must not change after the first call (see Update).
// Close it when it is no longer needed.
type Runner struct {
	// Policy is what commands may touch. Relative paths in it are relative to the
	// directory of the command. The zero Policy reads the platform's own files, writes
	// nowhere and has no network. sandbox.FullAccess, set here by the Runner's owner,
	// needs no approval.
	Policy sandbox.Policy
	// Network decides which hosts commands reach where the network of the Policy is the proxy. Nil
	// opens the hosts that the Policy grants, and no others. An entry that denies takes precedence
	// over a grant. Where it says [network.Ask], the Approver is asked while the command runs, unless
	// Approval is approval.Never; an answer for once counts as long as that command runs.
	Network *network.Policy
	// Rules say which commands run, which need an approval and which do not run, see package
	// rules; nil means that there are none. If a source of the Set did not load, nothing runs:
	// the error holds its [rules.LoadError]s.
	Rules *rules.Set
	// Approval says when a command needs an approval; the zero value asks where a rule prompts,
	// where a command asks for more than the Policy, and about what removes without asking (rm -f)
	// where the Policy protects no files. approval.Never forbids all three.
	Approval approval.Policy
	// SafeList has commands that are known to read only run without an approval under
	// approval.Untrusted. False means that there only rules allow.
	SafeList bool
	// Approver is asked about commands that need an approval, and about denials that made one
	// fail; nil means that what needs an approval is refused, and nothing is run again.
	Approver approval.Approver
	// Reviewer makes review strict: it is asked about every command that is not forbidden, also about
	// one that needs no approval, and about every second attempt, each time anew. What it does not
	// approve does not run, also where it passes. Where an approval is needed, Approver is asked
	// after it; if that is nil or passes, the review is the answer, but not under
	// approval.Untrusted. Nothing is approved for the session then. Nil reviews nothing.
	Reviewer approval.Approver
	// Permits returns an error if no approval and no rule may open what is required, in the words
	// of [approval.Request]: it is not asked for then, and a command that asks for it is forbidden.
	// Nil permits everything.
	Permits func(required []string) error
	// Writable are absolute paths that commands of other policies of the same user may write to. What
	// they can change does not decide: no approver is executed from there, and no rule leads a program
	// from there outside of the sandbox. The workspace, the Policy and what was approved need not be
	// repeated. Nil means none.
	Writable []string
	// AnswerTime is how long a question about an access is open for which a command waits (Cmd.AskWrites);
	// 0 means one minute. Then the access is denied.
	AnswerTime time.Duration
	// Remember keeps a rule that an approval allows for good: prefix is what commands begin with, nil
	// for a rule about a host, and line the same for a rule file. The rule counts for this Runner in any
	// case; an error is a warning in the Result. Nil means that no rule is offered.
	Remember func(prefix []string, line string) error
	// StopOnRefusedHost ends a command with EndRefused when a host that it wants to reach was asked
	// about and refused. False lets it go on without that host, unless the answer is to abort.
	StopOnRefusedHost bool
	// Parent is the Runner of which this one serves a part, such as another agent that the first
	// one has started: rules that are remembered here count there as well. Nil means none.
	Parent *Runner
	// Executor runs the commands; nil means this machine. Close does not close an
	// Executor that was set here.
	Executor executor.Executor
	// Events receives what happens; nil means no sink. It is called from one goroutine
	// at a time. When it is slow, output events are joined, then dropped and counted (see
	// WaitForEvents); no other event is dropped, but a slow sink may get some after Close (see Flush).
	// One that panics gets nothing more. See [event.Sink].
	Events event.Sink
	// WaitForEvents has commands wait for a slow sink, as for the reader of a pipe, in place of
	// dropping output events: writes of a command block while it is behind, and Run returns
	// when it has everything. What is still missing when a command is stopped (by its time
	// limit, its context or Close) may be dropped, and is counted; the time limit of one that has
	// ended goes on. False waits for no sink.
	WaitForEvents bool
	// Audit keeps what happens, output excepted, before Run returns; nil keeps nothing. See AuditRequired.
	Audit event.Log
	// AuditRequired runs nothing whose decision Audit does not keep before it starts: such a command ends with
	// an *AuditError, and one whose end is not kept has one beside its Result. False makes it a notice in the
	// Result. True without Audit runs nothing.
	AuditRequired bool
	// Tracer makes traces of what happens; nil makes none. See package telemetry.
	Tracer event.Tracer
	// MaxSessions is how many sessions may be alive at once; 0 means 64. Starting one
	// more is a *TooManySessionsError.
	MaxSessions int
	// Spill is how many bytes of the output of a session are kept in a file of the
	// user's state directory, beside the MiB in memory: the first half and the last half
	// of them. 0 means 64 MiB, negative none. All files of a user together have 1 GiB at
	// most; those of sessions that have ended go first. A file goes with its session.
	Spill int64
	// Logger gets one line at the end of each run, with names and numbers but without
	// output or values of variables, and at the level Debug records of decisions, reviews and
	// outcomes (see docs/reference.md); nil means silent.
	Logger *slog.Logger

	mu      sync.Mutex
	closed  bool
	alive   context.Context // ends with Close
	kill    context.CancelCauseFunc
	own     *local.Executor // made when Executor is nil
	running sync.WaitGroup  // runs under way; added to under mu while not closed
	events  *records.Queue

	sessions  sessions
	sandboxes map[*Sandbox]struct{} // open ones

	sequentialIDs bool // tests number sessions from 1000 on instead of at random

	live    *network.Live   // Network, as it is now; nil for nil
	asking  questions.Limit // of questions about commands that run
	memory  approval.Memory // of answers for the session
	amended *rules.Set      // Rules with what was remembered since; nil for Rules
	updated *setting        // nil for Policy and the current directory
	opened  []string        // paths that were approved for some command
}

// A setting is what commands begin with from a moment on.
type setting struct {
	policy sandbox.Policy
	dir    string
}

// Update changes what commands may touch, and the directory of those that name none; an empty dir
// is the current directory of this process. It counts for commands that are run or started from
// now on. Others keep what they began with, also those that wait for an answer and for their second
// attempt. What was approved for the session counts for the Policy that it was shown with.
func (r *Runner) Update(p sandbox.Policy, dir string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updated = &setting{p, dir}
}

// setting returns what a command begins with now.
func (r *Runner) setting() setting {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.updated != nil {
		return *r.updated
	}
	return setting{policy: r.Policy}
}

// enter counts a run, unless the Runner is closed. The returned context ends with ctx
// and with the Runner; leave must be called at the end of the run.
func (r *Runner) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	if ctx == nil {
		return nil, nil, ErrNoContext
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, ErrClosed
	}
	r.prepareLocked()
	r.running.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(r.alive, func() { cancel(ErrClosed) })
	return ctx, func() {
		detach()
		cancel(nil)
		r.running.Done()
	}, nil
}

// prepareLocked makes the parts that the zero Runner lacks.
func (r *Runner) prepareLocked() {
	if r.alive != nil {
		return
	}
	r.alive, r.kill = context.WithCancelCause(context.Background())
	if r.Executor == nil {
		r.own = new(local.Executor)
	}
	if r.Events != nil || r.Audit != nil || r.Tracer != nil {
		r.events = &records.Queue{Sink: r.Events, Log: r.Audit, Tracer: r.Tracer}
	}
	if r.Network != nil {
		r.live = network.NewLive(r.Network)
	}
}

// outputs is the queue for output, nil without a sink for it.
func (r *Runner) outputs() *records.Queue {
	if r.Events == nil {
		return nil
	}
	return r.events
}

// permits is Permits, or nil. A panic permits nothing.
func (r *Runner) permits(required ...string) error {
	if r.Permits == nil || len(required) == 0 {
		return nil
	}
	return strict.Call("Permits", func() error { return r.Permits(required) })
}

// bars reports whether Permits has something against what is required.
func (r *Runner) bars(required ...string) bool { return r.permits(required...) != nil }

// rules returns the rules that count now; it is never nil.
func (r *Runner) rules() *rules.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.amended != nil:
		return r.amended
	case r.Rules != nil:
		return r.Rules
	}
	return new(rules.Set)
}

// executor returns where commands run.
func (r *Runner) executor() executor.Executor {
	if r.Executor != nil {
		return r.Executor
	}
	return r.own
}

// Close ends all runs as the end of their contexts would, waits for them, and frees
// what the Runner holds: on this machine, the private /tmp of its commands. It may be
// called more than once; every call waits. Runs in progress return [ErrClosed] with what
// is known.
func (r *Runner) Close() error {
	r.mu.Lock()
	if r.kill != nil {
		r.kill(ErrClosed)
	}
	r.closed = true
	own, events := r.own, r.events
	r.mu.Unlock()

	r.running.Wait()
	events.Flush(nil, nil)
	r.sessions.Close()
	r.sessions.drop()
	err := errors.Join(events.Err(), r.closeSandboxes())
	if own != nil {
		err = errors.Join(own.Close(), err)
	}
	if err != nil {
		return fmt.Errorf("sallyport: cannot close the runner: %w", err)
	}
	return nil
}

// Flush blocks until Events has returned from everything that happened before the call, however slow it
// is. The error is the cause of ctx, which ends the wait, or a *PanicError of Events. Close waits two
// seconds at most: who needs every event calls Flush before it, and after it for those of runs that it
// ended. Without Events it returns at once.
func (r *Runner) Flush(ctx context.Context) error {
	r.mu.Lock()
	events := r.events
	r.mu.Unlock()
	return events.Await(ctx)
}

// closeSandboxes closes those that are open. No run is left.
func (r *Runner) closeSandboxes() (err error) {
	r.mu.Lock()
	left := slices.Collect(maps.Keys(r.sandboxes))
	r.mu.Unlock()
	for _, s := range left {
		err = errors.Join(err, s.Close())
	}
	return err
}

// Run runs a command to its end and returns what happened. A command that ran has a
// Result, whatever its exit code; an error means that it did not run, or that its end
// is not known ([ErrEndUnknown]: then it may have run, and may run still). Both are returned when the
// run was cut short: by the end of ctx (the error wraps its cause) or by Close ([ErrClosed]). The
// command's process tree is then ended as after a timeout, and the Result is what is known.
//
// Run returns when nothing of the command is left: neither a process, nor a goroutine
// that serves it, except one that is blocked in a Read of Cmd.Stdin or in a Write of a
// writer that makes no progress.
func (r *Runner) Run(ctx context.Context, c *Cmd) (*Result, error) { return r.run(ctx, c, nil) }

// run is Run in a shared sandbox, or with nil in one of the command's own.
func (r *Runner) run(ctx context.Context, c *Cmd, in *Sandbox) (*Result, error) {
	ctx, leave, err := r.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out, err := in.enter()
	if err != nil {
		return nil, err
	}
	defer out()
	x, err := r.newExecution(ctx, c)
	if err != nil {
		return nil, err
	}
	x.sandbox = in
	return x.execute(ctx, ctx, func(*attempt) {})
}

// execute is the way of every command, of Run and of Start alike: judge it, ask where
// an approval is needed, attempt it, attempt it once more with what was approved then, and
// conclude. The end of ctx prevents the start; the end of life ends the command. Running is
// called with each attempt once its process runs.
func (x *execution) execute(ctx, life context.Context, running func(*attempt)) (*Result, error) {
	x.traced()
	var err error
	if x.patch != nil {
		err = x.authorizePatch(ctx)
	} else {
		err = x.authorize(ctx, x.judge())
	}
	if err != nil {
		return x.conclude(nil, err)
	}
	a, err := x.attempt(ctx, life, running)
	if a == nil || err != nil {
		return x.conclude(a, err)
	}
	switch again, err := x.widen(life, a); {
	case err != nil:
		return x.abandon(a, err)
	case !again:
		return x.conclude(a, nil)
	}
	x.first = x.result(a)
	second, err := x.attempt(life, life, running)
	switch {
	case second != nil:
		return x.conclude(second, err)
	case life.Err() != nil:
		return x.abandon(a, err)
	}
	x.first = nil
	if errors.Is(err, ErrEndUnknown) {
		return x.conclude(a, err)
	}
	x.noted = append(x.noted, "it was not run again: "+err.Error())
	return x.conclude(a, nil)
}

// abandon concludes a run that was canceled after its first attempt, before a second one began.
func (x *execution) abandon(a *attempt, err error) (*Result, error) {
	x.first = nil
	first := x.result(a)
	a.end = EndCanceled
	if by := new(InterruptedError); errors.As(err, &by) {
		a.exit.LastSignal = by.Signal
	}
	res, err := x.conclude(a, err)
	res.First = first
	return res, err
}

// attempt runs the command once. Without an attempt the error says why there is no process.
func (x *execution) attempt(ctx, life context.Context, running func(*attempt)) (*attempt, error) {
	a, err := x.begin(ctx, x.policy)
	if err != nil {
		return nil, err
	}
	running(a)
	x.life = life
	return a, x.follow(life, a)
}

// judge has the task judged, and reports it.
func (x *execution) judge() judge.Decision {
	x.asIs.policy, x.asIs.env = x.policy, x.env
	x.version = reach.Version(x.policy, x.runner.Approval, x.runner.live.Policy().Version())
	d := x.requirement(x.runner.rules())
	x.retry = d.Retry
	held := ""
	if d.Held != nil {
		held = d.Held.Error()
		x.note("it stays in the sandbox although a rule leads it outside: " + held)
	}
	if d.Rule != nil {
		x.rule = &Rule{File: d.Rule.File, Line: d.Rule.Line, Column: d.Rule.Column,
			Decision: d.Rule.Decision.String(), Sandbox: d.Rule.Sandbox.String(),
			Justification: d.Rule.Justification}
	}
	x.emit(event.Judged{Args: x.args, Dir: x.dir, Decision: decisions[d.Answer], Reason: d.Reason,
		Rule: x.rule, Review: x.runner.Reviewer != nil && d.Answer != judge.Forbid, PolicyVersion: x.version,
		Path: d.Path(), Requires: d.Requires(x.cmd.AskFor), Held: held})
	return d
}

// decisions are the words of event for answers.
var decisions = [...]string{judge.Forbid: event.DecisionForbid, judge.Ask: event.DecisionPrompt,
	judge.Skip: event.DecisionAllow}

// place fixes the policy where rules say where the command runs.
func (x *execution) place(d judge.Decision) error {
	switch d.Where {
	case rules.Unsaid:
		return nil
	case rules.Outside:
		return x.leave()
	}
	policy, err := judge.Confine(x.policy, d.Where, x.places)
	if err != nil {
		return fmt.Errorf("sallyport: the policy is invalid: %w", err)
	}
	if !policy.Equal(x.policy) {
		x.confined = "rule"
		if x.rule != nil && x.rule.Sandbox == d.Where.String() {
			x.confined += " " + rules.Pos{File: x.rule.File, Line: x.rule.Line, Col: x.rule.Column}.String()
		}
		x.confined += " (sandbox=" + d.Where.String() + ")"
	}
	return x.confine(policy)
}

// byRule adds to an error the rule that decided, if there is one.
func (x *execution) byRule(err error) error {
	if x.rule == nil {
		return err
	}
	return &RuleError{Rule: *x.rule, Err: err}
}

// conclude reports the end of a run once.
func (x *execution) conclude(a *attempt, err error) (*Result, error) {
	x.keys.Close()
	x.look.Close()
	var res *Result
	switch {
	case a != nil:
		if err := x.runner.events.Err(); err != nil {
			x.note("events are missing: " + err.Error())
		}
		res = x.result(a)
		x.outcome(a)
	case len(x.approvals) > 0:
		err = &ApprovalError{x.approvals, err}
	}
	code := -1
	if res != nil {
		code = res.ExitCode
	}
	if made, notice := x.terminal.End(code); made != nil {
		x.emit(*made)
		if res != nil {
			res.Recording = made
		}
		if res != nil && notice != "" {
			res.Notices = append(res.Notices, notice)
		}
	}
	x.ended(res, err)
	return x.kept(res, err)
}

// requirement says by a set of rules whether the command runs, whether that needs an approval, and
// what may be asked after a denial. It is decided by the rules, the Runner's approval policy and what
// the Cmd asks for. What stays in the sandbox and is in no rule is allowed, because the Runner's owner
// chose the sandbox.
func (x *execution) requirement(set *rules.Set) judge.Decision {
	q := &judge.Question{
		Command: x.args, Arg0: x.cmd.Arg0, Rules: set, Host: rules.Host{Dir: x.dir, Home: x.places.Home},
		Approval: x.runner.Approval, SafeList: x.runner.SafeList,
		Place: judge.PlaceOf(x.asIs.policy), Denies: x.asIs.policy.Denies() || x.cmd.Stays ||
			x.cmd.Stage != nil,
		Hosts: judge.HostsOf(x.asIs.policy, x.runner.live.Policy()), Ceiling: x.runner.bars(approval.Outside),
	}
	if x.host.Local {
		q.Site = &reach.Site{Reach: x.reach(), Dir: x.dir, Env: x.env, Login: x.cmd.Login}
	}
	q.Want(x.cmd.Unsandboxed, len(x.cmd.AskFor) > 0)
	d := judge.Judge(q)
	if x.cmd.Stage != nil && d.Rule != nil && d.Rule.Sandbox == rules.Outside && d.Held == nil {
		d.Held = errStaged
	}
	return d
}
