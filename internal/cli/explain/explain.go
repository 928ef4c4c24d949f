// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An Explanation is what is known of a command before it runs.
type Explanation struct {
	// Decision is that of a run: Prompt means that it needs an approval.
	Decision rules.Decision `json:"decision"`
	judge.Parts
	// Approval is what the approval policy makes of it, and Path which row of the judge's table
	// decided. Sandbox is where it would run.
	Approval Approval `json:"approval"`
	Path     string   `json:"path"`
	// Review says that a model reviews it before it runs, whatever Approval says: strict review.
	Review  bool    `json:"strict_review,omitempty"`
	Sandbox Sandbox `json:"sandbox"`
	// Asked is the question that the run would ask; nil for none.
	Asked *approval.Request `json:"-"`
	// Rule is the rule that decided; nil if none did.
	Rule *event.Rule `json:"-"`
	// Held is why it stays in the sandbox although a rule leads it outside; empty where none does.
	Held string `json:"held,omitempty"`
}

// Approval is what an approval policy makes of a command.
type Approval struct {
	Policy approval.Policy `json:"policy"`
	Answer string          `json:"answer"` // skip, ask or forbid
	Reason string          `json:"reason,omitempty"`
	// Requires is what the question would open, in the words of requests for approval, and Offers
	// are the rules that it would offer to remember.
	Requires []string   `json:"requires,omitempty"`
	Offers   [][]string `json:"offers,omitempty"`
}

// A Sandbox is the sandbox of a run, as settings describe it.
type Sandbox struct {
	Mode    string   `json:"mode"`
	Network string   `json:"network"`
	Level   string   `json:"level"` // the least that is accepted
	Read    []string `json:"read,omitempty"`
	Write   []string `json:"write,omitempty"`
	Deny    []string `json:"deny,omitempty"`
	Grants  []string `json:"grants,omitempty"`
	Allow   []string `json:"allow,omitempty"`
	// Base is the mode before anything was added.
	Base string `json:"base"`
}

// ExplainRun says what would become of a run of a command, which s describes: the Runner runs it, with
// an executor that starts nothing and an approver that approves. So the answer is that of a run,
// whatever it rests on. The Runner must be new; q says how its command is taken apart for people. If
// rules do not load, the error holds [rules.LoadError]s.
func ExplainRun(ctx context.Context, r *sallyport.Runner, c *sallyport.Cmd, q Question,
	s Sandbox) (*Explanation, error) {
	if err := r.Rules.Err(); err != nil {
		return nil, err
	}
	x := &rehearsal{Executor: new(local.Executor)}
	answers := approval.Func(x.approve)
	if r.Executor, r.Events, r.Approver = x, x, answers; r.Reviewer != nil {
		r.Reviewer = answers
	}
	_, err := r.Run(ctx, c)
	forbidden := errors.Is(err, sallyport.ErrForbidden)
	if x.spec == nil && !forbidden && !errors.Is(err, sallyport.ErrRefused) {
		return nil, err // the command is not valid
	}
	e := x.explanation(r, c, q)
	if forbidden && e.Decision != rules.Forbid { // by the ceiling
		e.Decision, e.Approval.Answer, e.Approval.Reason = rules.Forbid, "forbid", err.Error()
	}
	e.Sandbox = x.sandbox(r.Policy, s)
	return e, nil
}

// A rehearsal is an executor that starts nothing, and hears what a Runner decides and asks.
type rehearsal struct {
	executor.Executor
	places sandbox.Places
	spec   *executor.Spec // of the first attempt; nil before
	judged event.Judged
	asked  *approval.Request // nil if nothing was asked
}

var errRehearsed = errors.New("nothing is started")

// Start implements [executor.Executor].
func (x *rehearsal) Start(_ context.Context, spec *executor.Spec) (executor.Process, error) {
	x.spec = spec
	return nil, errRehearsed
}

// Perform is Start for a patch.
func (x *rehearsal) Perform(spec *executor.Spec, _ executor.Task) (executor.Process, error) {
	x.spec = spec
	return nil, errRehearsed
}

// Unwrap returns the executor that plans.
func (x *rehearsal) Unwrap() executor.Executor { return x.Executor }

// Places implements [executor.Executor].
func (x *rehearsal) Places(ctx context.Context, dir string, env []string,
	tmp string) (sandbox.Places, error) {
	var err error
	x.places, err = x.Executor.Places(ctx, dir, env, tmp)
	return x.places, err
}

// Emit implements [event.Sink].
func (x *rehearsal) Emit(e event.Event) {
	if judged, ok := e.Body.(event.Judged); ok {
		x.judged = judged
	}
}

// approve is an approver that approves once.
func (x *rehearsal) approve(_ context.Context, q *approval.Request) (approval.Decision, error) {
	x.asked = q
	return q.Decide(approval.Approved), nil
}

// explanation is what was decided, and what the command consists of.
func (x *rehearsal) explanation(r *sallyport.Runner, c *sallyport.Cmd, q Question) *Explanation {
	e := &Explanation{
		Decision: map[string]rules.Decision{event.DecisionForbid: rules.Forbid,
			event.DecisionPrompt: rules.Prompt, event.DecisionAllow: rules.Allow}[x.judged.Decision],
		Path: x.judged.Path, Review: x.judged.Review, Held: x.judged.Held, Rule: x.judged.Rule,
		Asked: x.asked,
	}
	if !q.Brief {
		x.takeApart(e, r, c, q)
	}
	e.Approval = Approval{Policy: r.Approval, Reason: x.judged.Reason, Requires: x.judged.Requires}
	e.Approval.Answer = map[rules.Decision]string{rules.Forbid: "forbid", rules.Prompt: "ask",
		rules.Allow: "skip"}[e.Decision]
	if x.asked != nil {
		e.Approval.Requires = x.asked.Requires
		for _, o := range x.asked.Offers {
			e.Approval.Offers = append(e.Approval.Offers, o.Rule)
		}
	}
	for _, parts := range [][]judge.Part{e.Commands, e.Runs} {
		for i := range parts {
			if e.Decision == rules.Allow {
				parts[i].Decision = rules.Allow // what heuristics would ask about elsewhere
			}
		}
	}
	if e.Review {
		e.Decision = rules.Prompt
	}
	return e
}

// takeApart adds of what a command consists.
func (x *rehearsal) takeApart(e *Explanation, r *sallyport.Runner, c *sallyport.Cmd, q Question) {
	whole := judge.Judge(&judge.Question{
		Command: x.judged.Args, Rules: r.Rules, Host: q.Host, Approval: r.Approval,
		SafeList: true, Site: q.Site,
		Place: judge.PlaceOf(r.Policy), Whole: true,
	})
	e.Parts = *whole.Parts
	if whole.Answer == judge.Skip && e.Decision == rules.Allow && !c.Unsandboxed && len(c.AskFor) == 0 {
		// a run in a sandbox does not ask the heuristics, which say more and decide nothing
		e.Path = whole.Path()
	}
}

// sandbox is where the command would run, after an approval that it may need.
func (x *rehearsal) sandbox(policy sandbox.Policy, s Sandbox) Sandbox {
	if x.spec == nil || x.spec.Policy.Equal(policy.Bind(x.places)) {
		return s
	}
	p := x.spec.Policy
	if p.Mode() == sandbox.Full {
		return Sandbox{Mode: "full-access", Network: "host", Level: "none", Base: "full-access"}
	}
	base := p.Name()
	if x.asked != nil && len(x.asked.Requires) > 0 { // what was added stands in what it requires
		s.Mode, s.Network = base, p.Network().String()
		return s
	}
	return Sandbox{Mode: base, Network: p.Network().String(), Level: s.Level, Deny: s.Deny,
		Allow: s.Allow, Base: base}
}

// String returns the explanation for people.
func (e *Explanation) String() string {
	var b strings.Builder
	switch {
	case e.Decision == rules.Prompt:
		b.WriteString("This command needs approval.\n")
	case e.Decision == rules.Allow && e.Sandbox.Mode == "full-access":
		b.WriteString("This command may run.\n")
	case e.Decision == rules.Allow:
		b.WriteString("This command may run in the sandbox.\n")
	case slices.ContainsFunc(slices.Concat(e.Commands, e.Runs),
		func(p judge.Part) bool { return p.Decision == rules.Forbid }):
		b.WriteString("The rules forbid this command.\n")
	default:
		b.WriteString("This command does not run.\n")
	}
	for _, p := range e.Commands {
		writePart(&b, "", p)
	}
	for _, p := range e.Runs {
		writePart(&b, "may run ", p)
	}
	if e.Opaque {
		fmt.Fprintf(&b, "The script is more than plain commands (%s); rules that allow its commands do not count.\n", e.Reason)
	}
	for _, u := range e.Unknown {
		at := ""
		if u.Line > 0 {
			at = fmt.Sprintf(" at line %d, column %d", u.Line, u.Column)
		}
		fmt.Fprintf(&b, "Other commands may run%s: %s.\n", at, u.Why)
	}
	if a := &e.Approval; a.Reason != "" {
		fmt.Fprintf(&b, "Approval %s: %s.\n", a.Policy, text.Line(a.Reason))
	}
	if a := &e.Approval; len(a.Requires) > 0 {
		fmt.Fprintf(&b, "The question would open: %s.\n", text.Line(strings.Join(a.Requires, ", ")))
	}
	for _, rule := range e.Approval.Offers {
		fmt.Fprintf(&b, "A rule could be remembered: commands that begin with %s.\n", words(rule))
	}
	fmt.Fprintf(&b, "Decided by: %s.\n", e.Path)
	if e.Held != "" {
		fmt.Fprintf(&b, "It stays in the sandbox although a rule leads it outside: %s.\n", text.Line(e.Held))
	}
	if e.Review {
		b.WriteString("Strict review: the reviewing model has to approve it, each time.\n")
	}
	e.Sandbox.write(&b)
	return b.String()
}

// write adds the lines of a sandbox.
func (s *Sandbox) write(b *strings.Builder) {
	if s.Mode == "full-access" {
		b.WriteString("No sandbox: it may do what this user may.\n")
		return
	}
	fmt.Fprintf(b, "Sandbox: %s, network %s, level %s or better.\n", s.Mode, s.Network, s.Level)
	for _, row := range []struct {
		what  string
		names []string
	}{{"writes", s.Write}, {"reads", s.Read}, {"denies", s.Deny}, {"grants", s.Grants}, {"allows", s.Allow}} {
		if len(row.names) > 0 {
			fmt.Fprintf(b, "  %-9s  %s\n", row.what, text.Line(strings.Join(row.names, ", ")))
		}
	}
}

// writePart adds the lines of a command.
func writePart(b *strings.Builder, what string, p judge.Part) {
	var notes []string
	switch {
	case p.Rule == nil:
		notes = append(notes, "no rule")
	case p.Rule.Maybe:
		notes = append(notes, "maybe "+place(p.Rule))
	default:
		notes = append(notes, place(p.Rule))
	}
	if p.Safe {
		notes = append(notes, "reads only")
	}
	if p.Danger {
		notes = append(notes, "removes without asking")
	}
	if p.Through != "" {
		notes = append(notes, "by "+text.Word(p.Through))
	}
	fmt.Fprintf(b, "  %-9s  %s%s  (%s)\n", p.Decision, what, words(p.Argv), strings.Join(notes, ", "))
	if p.Rule != nil {
		for line := range strings.Lines(p.Rule.Justification) {
			fmt.Fprintf(b, "%13s%s\n", "", text.Line(strings.TrimSpace(line)))
		}
	}
}

func place(r *judge.Rule) string {
	return text.Line(rules.Pos{File: r.File, Line: r.Line, Col: r.Column}.String())
}
