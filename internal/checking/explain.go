// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package checking

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/judge"
	"github.com/sallyport-dev/sallyport/internal/printable"
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
	// Held is why it stays in the sandbox although a rule leads it outside; empty where none does.
	Held string `json:"held,omitempty"`
}

// Approval is what an approval policy makes of a command.
type Approval struct {
	Policy approval.Policy `json:"policy"`
	Answer string          `json:"answer"` // skip, ask or forbid
	Reason string          `json:"reason,omitempty"`
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

// ExplainRun takes a command apart, asks the rules about each part, and says what would become of
// a run of it under a policy, which s describes. Errors are those of [Ask]. Base names of programs
// always count.
func ExplainRun(q Question, s Sandbox, policy sandbox.Policy) (*Explanation, error) {
	set, err := q.load()
	if err != nil {
		return nil, err
	}
	d := judge.Judge(&judge.Question{
		Command: q.Command, Rules: set, Host: q.Host, Approval: q.Approval, SafeList: q.SafeList, Site: q.Site,
		Place: judge.PlaceOf(policy), Denies: policy.Denies(), Whole: true,
	})
	answer := [...]string{judge.Forbid: "forbid", judge.Ask: "ask", judge.Skip: "skip"}[d.Answer]
	e := &Explanation{
		Decision: [...]rules.Decision{judge.Forbid: rules.Forbid, judge.Ask: rules.Prompt, judge.Skip: rules.Allow}[d.Answer],
		Parts:    *d.Parts, Approval: Approval{q.Approval, answer, d.Reason}, Path: d.Path(),
		Review: q.Strict && d.Answer != judge.Forbid,
	}
	if e.Review {
		e.Decision = rules.Prompt
	}
	if d.Held != nil {
		e.Held = d.Held.Error()
	}
	for _, parts := range [][]judge.Part{e.Commands, e.Runs} {
		for i := range parts {
			if d.Answer == judge.Skip {
				parts[i].Decision = rules.Allow // what heuristics would ask about elsewhere
			}
		}
	}
	places := sandbox.Places{Dir: q.Host.Dir, SlashTmp: "/tmp", Home: q.Host.Home}
	policy = policy.Bind(places)
	confined, err := judge.Confine(policy, d.Where, places)
	if d.Where == rules.Outside {
		confined = sandbox.FullAccess()
	}
	switch {
	case err != nil:
		return nil, err
	case confined.Equal(policy):
	case confined.Mode() == sandbox.Full:
		s = Sandbox{Mode: "full-access", Network: "host", Level: "none", Base: "full-access"}
	default:
		s = Sandbox{Mode: confined.Name(), Network: confined.Network().String(), Level: s.Level, Deny: s.Deny, Allow: s.Allow, Base: d.Where.String()}
	}
	e.Sandbox = s
	return e, nil
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
	case slices.ContainsFunc(slices.Concat(e.Commands, e.Runs), func(p judge.Part) bool { return p.Decision == rules.Forbid }):
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
		fmt.Fprintf(&b, "Approval %s: %s.\n", a.Policy, printable.Line(a.Reason))
	}
	fmt.Fprintf(&b, "Decided by: %s.\n", e.Path)
	if e.Held != "" {
		fmt.Fprintf(&b, "It stays in the sandbox although a rule leads it outside: %s.\n", printable.Line(e.Held))
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
			fmt.Fprintf(b, "  %-9s  %s\n", row.what, printable.Line(strings.Join(row.names, ", ")))
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
		notes = append(notes, "by "+printable.Word(p.Through))
	}
	fmt.Fprintf(b, "  %-9s  %s%s  (%s)\n", p.Decision, what, words(p.Argv), strings.Join(notes, ", "))
	if p.Rule != nil {
		for line := range strings.Lines(p.Rule.Justification) {
			fmt.Fprintf(b, "%13s%s\n", "", printable.Line(strings.TrimSpace(line)))
		}
	}
}

func place(r *judge.Rule) string {
	return printable.Line(rules.Pos{File: r.File, Line: r.Line, Col: r.Column}.String())
}
