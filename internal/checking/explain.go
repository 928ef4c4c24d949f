// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package checking

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/script"
	"github.com/sallyport-dev/sallyport/rules"
)

// An Explanation is what is known of a command before it runs: what it consists of, and what
// rules and heuristics say about each part.
type Explanation struct {
	// Decision is allow, prompt or forbidden: the strictest of all parts. Allow means that the
	// command may run in the sandbox.
	Decision string `json:"decision"`
	// Commands are those of a script that consists of plain commands; else the command itself.
	Commands []Part `json:"commands"`
	// Runs are other commands that Commands may run.
	Runs []Part `json:"runs"`
	// Opaque is whether a script is more than plain commands, and Reason why. Rules that allow
	// its commands do not count then.
	Opaque bool   `json:"opaque"`
	Reason string `json:"reason,omitempty"`
	// Unknown are places where other commands may run.
	Unknown []Unknown `json:"unknown,omitempty"`
}

// A Part is one command.
type Part struct {
	Argv     []string `json:"argv"` // "…" stands for what is not known
	Decision string   `json:"decision"`
	Safe     bool     `json:"safe"`      // known to read only
	Danger   bool     `json:"dangerous"` // removes without asking, or runs what does
	Rule     *Rule    `json:"rule"`      // nil if no rule matches
	// Line and Column are its place in the script, or 0; Through is what runs it there.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Through string `json:"through,omitempty"`

	decision rules.Decision
}

// A Rule is the strictest rule that matches a command.
type Rule struct {
	File          string `json:"file"`
	Line          int    `json:"line"`
	Column        int    `json:"column"`
	Decision      string `json:"decision"`
	Justification string `json:"justification,omitempty"`
	// Maybe says that it depends on what is not known whether the rule matches. A rule that
	// forbids prompts then.
	Maybe bool `json:"maybe,omitempty"`
}

// Unknown is a place where other commands may run.
type Unknown struct {
	Why    string `json:"why"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// A judge asks the rules about commands.
type judge struct {
	set        *rules.Set
	host       rules.Host
	restricted []rules.Restriction
}

// ExplainCommand takes a command apart and asks the rules about each part. Errors are those of
// [Ask]. Base names of programs always count.
func ExplainCommand(q Question) (*Explanation, error) {
	set, err := q.load()
	if err != nil {
		return nil, err
	}
	j := judge{set, q.Host, set.Restrictions()}
	r := script.Read(q.Command)
	e := &Explanation{Runs: []Part{}, Opaque: r.Opaque != "", Reason: string(r.Opaque)}
	plain := r.Plain
	if e.Opaque {
		plain = []script.Command{{Args: q.Command}}
	}
	for _, c := range plain {
		e.Commands = append(e.Commands, j.part(c))
	}
	for _, c := range r.Uses {
		if slices.ContainsFunc(plain, func(p script.Command) bool { return slices.Equal(p.Args, c.Args) }) {
			continue
		}
		p := j.part(c)
		if wrapper := c.Line == 0 && r.Wrapper; wrapper || c.Form {
			if p.Rule == nil || p.decision == rules.Allow {
				continue // neither is something else that runs
			}
		}
		e.Runs = append(e.Runs, p)
	}
	decision := rules.Allow
	for _, p := range slices.Concat(e.Commands, e.Runs) {
		decision = min(decision, p.decision)
	}
	for _, u := range r.Unknown {
		e.Unknown = append(e.Unknown, Unknown{string(u.Why), u.Line, u.Column})
		if len(j.restricted) > 0 {
			decision = min(decision, rules.Prompt)
		}
	}
	e.Decision = decision.String()
	return e, nil
}

// part judges one command.
func (j *judge) part(c script.Command) Part {
	p := Part{Argv: c.Words(), Line: c.Line, Column: c.Column, Through: c.Through, decision: rules.Allow, Danger: c.Dangerous()}
	if c.Exact() {
		p.Safe = script.Safe(c.Args)
		p.Danger = p.Danger || script.Read(c.Args).Dangerous()
		if res := j.set.Resolve(c.Args, j.host); len(res.Matches) > 0 {
			p.decision = res.Decision
			p.rule(res.Matches[slices.IndexFunc(res.Matches, func(m rules.Match) bool { return m.Decision == res.Decision })], false)
		}
	} else {
		j.partly(&p, c)
	}
	if p.Danger && p.Rule == nil {
		p.decision = rules.Prompt
	}
	p.Decision = p.decision.String()
	return p
}

// partly judges a command that is not known to its last word. An allow does not count for it.
func (j *judge) partly(p *Part, c script.Command) {
	base := c // by the name of its file
	base.Args = append([]string{path.Base(c.Args[0])}, c.Args[1:]...)
	for _, r := range j.restricted {
		switch sure := max(c.Begins(r.Pattern, r.Equal), base.Begins(r.Pattern, r.Equal)); {
		case sure == script.Yes && (p.Rule == nil || p.Rule.Maybe || r.Decision < p.decision):
			p.decision = r.Decision
			p.rule(r.Match, false)
		case sure == script.Maybe && p.Rule == nil:
			p.decision = rules.Prompt
			p.rule(r.Match, true)
		}
	}
}

func (p *Part) rule(m rules.Match, maybe bool) {
	p.Rule = &Rule{m.File, m.Line, m.Col, m.Decision.String(), m.Justification, maybe}
}

// String returns the explanation for people.
func (e *Explanation) String() string {
	var b strings.Builder
	b.WriteString(map[string]string{
		"forbidden": "The rules forbid this command.\n", "prompt": "This command needs approval.\n", "allow": "This command may run in the sandbox.\n",
	}[e.Decision])
	for _, p := range e.Commands {
		p.write(&b, "")
	}
	for _, p := range e.Runs {
		p.write(&b, "may run ")
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
	return b.String()
}

// write adds the lines of a command.
func (p *Part) write(b *strings.Builder, what string) {
	var notes []string
	switch {
	case p.Rule == nil:
		notes = append(notes, "no rule")
	case p.Rule.Maybe:
		notes = append(notes, "maybe "+p.Rule.place())
	default:
		notes = append(notes, p.Rule.place())
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

func (r *Rule) place() string {
	return printable.Line(rules.Pos{File: r.File, Line: r.Line, Col: r.Column}.String())
}
