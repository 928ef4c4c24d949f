// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"path"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/rules"
)

// Parts is what a command consists of, and what rules and heuristics say about each part.
type Parts struct {
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
	Argv     []string       `json:"argv"` // "…" stands for what is not known
	Decision rules.Decision `json:"decision"`
	Safe     bool           `json:"safe"`      // known to read only
	Danger   bool           `json:"dangerous"` // removes without asking, or runs what does
	Rule     *Rule          `json:"rule"`      // nil if no rule matches
	// Line and Column are its place in the script, or 0; Through is what runs it there.
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Through string `json:"through,omitempty"`

	allowed bool // a rule allows this very program
	outside bool // rules allow it outside of the sandbox
}

// A Rule is one that matches a command.
type Rule struct {
	File          string         `json:"file"`
	Line          int            `json:"line"`
	Column        int            `json:"column"`
	Decision      rules.Decision `json:"decision"`
	Justification string         `json:"justification,omitempty"`
	// Maybe says that it depends on what is not known whether the rule matches. A rule that
	// forbids prompts then.
	Maybe bool `json:"maybe,omitempty"`
	// Sandbox is what the rule says about where.
	Sandbox rules.Sandbox `json:"-"`
}

// Unknown is a place where other commands may run.
type Unknown struct {
	Why    string `json:"why"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// A reader asks the rules about the parts of a command.
type reader struct {
	Parts
	set        *rules.Set
	host       rules.Host
	site       Site
	untrusted  bool // it matters whether a part is the program that a rule allows
	heuristics bool // Safe and Danger of the parts are wanted

	restricted []rules.Restriction // see restrictions
	listed     bool

	said     map[kind]said // of the rules that match, the one of each kind with the most words
	narrow   *Rule         // of those that give a narrower sandbox, the strictest
	compared int           // see maxCompared
	maybe    int           // the same, of commands that only may run
	alien    bool          // the script is for a shell that only has the name of one
	held     error         // see Decision.Held
	by       *said         // the rule that is against the command, or may be; nil if none is
}

// said is one rule that matches a part, with the words that it matches.
type said struct {
	Rule
	prefix []string
}

// A kind is what a rule that matches does.
type kind struct {
	decision rules.Decision
	maybe    bool // it depends on what is not known
}

// maxCompared is how often commands that are known in part are compared with a rule. Those
// beyond are as unknown as what they run.
const maxCompared = 200_000

// matched records a rule that matches.
func (r *reader) matched(rule Rule, prefix []string) {
	k := kind{rule.Decision, rule.Maybe}
	if best, ok := r.said[k]; !ok || len(prefix) >= len(best.prefix) {
		if r.said == nil {
			r.said = map[kind]said{}
		}
		r.said[k] = said{rule, prefix}
	}
	r.narrows(rule)
}

// narrows records what a rule that may match says about the sandbox.
func (r *reader) narrows(rule Rule) {
	if s := rule.Sandbox; s != rules.Unsaid && s != rules.Outside &&
		(r.narrow == nil || s < r.narrow.Sandbox) {
		kept := rule // else every rule would be on the heap
		r.narrow = &kept
	}
}

// restrictions returns those of the set.
func (r *reader) restrictions() []rules.Restriction {
	if !r.listed {
		r.restricted, r.listed = r.set.Restrictions(), true
	}
	return r.restricted
}

// read adds the parts of a command.
func (r *reader) read(command []string) {
	s := script.Read(command)
	plain := s.Plain
	if s.Opaque != "" {
		r.Opaque, r.Reason = true, string(s.Opaque)
		plain = []script.Command{{Args: command}}
	}
	r.alien = r.alien || s.Wrapper && !r.shell(command)
	for _, c := range plain {
		r.Commands = append(r.Commands, r.part(c))
	}
	if r.Runs == nil {
		r.Runs = []Part{}
	}
	for _, c := range s.Uses {
		if slices.ContainsFunc(plain, func(p script.Command) bool { return slices.Equal(p.Args, c.Args) }) {
			continue
		}
		p := r.part(c)
		if wrapper := c.Line == 0 && s.Wrapper; wrapper || c.Form || c.Maybe {
			if p.Rule == nil || p.Decision == rules.Allow {
				continue // neither is something else that runs
			}
		}
		r.Runs = append(r.Runs, p)
	}
	if !r.set.Empty() {
		for _, c := range s.Perhaps() {
			if p := r.part(c); p.Rule != nil {
				r.Runs = append(r.Runs, p)
			}
		}
	}
	for _, u := range s.Unknown {
		r.Unknown = append(r.Unknown, Unknown{string(u.Why), u.Line, u.Column})
	}
}

// unknownPrompts reports whether commands that are not known may be ones for which a rule
// prompts or that it forbids.
func (r *reader) unknownPrompts() bool {
	return len(r.Unknown) > 0 && slices.ContainsFunc(r.restrictions(),
		func(x rules.Restriction) bool { return x.Decision < rules.Allow })
}

// part judges one command.
func (r *reader) part(c script.Command) Part {
	p := Part{Argv: c.Words(), Line: c.Line, Column: c.Column, Through: c.Through, Decision: rules.Allow}
	if r.heuristics {
		p.Danger = c.Dangerous()
	}
	switch {
	case c.Maybe && c.Exact():
		r.perhaps(&p, r.set.Resolve(c.Args, r.host))
	case c.Exact():
		if r.heuristics {
			p.Safe = r.safe(&c)
			p.Danger = p.Danger || script.Read(c.Args).Dangerous()
		}
		r.exactly(&p, &c, r.set.Resolve(c.Args, r.host))
	default:
		r.partly(&p, c)
	}
	if p.Danger && p.Rule == nil {
		p.Decision = rules.Prompt
	}
	return p
}

// exactly records what the rules say about a command that is known to its last word.
func (r *reader) exactly(p *Part, c *script.Command, res rules.Result) {
	if len(res.Matches) == 0 {
		return
	}
	p.Decision = res.Decision
	for _, m := range res.Matches {
		one := ruleOf(m, false)
		r.matched(one, m.Prefix)
		if p.Rule == nil && m.Decision == res.Decision {
			p.Rule = &one
		}
	}
	p.allowed = res.Decision == rules.Allow && r.named(c, &res.Matches[0])
	p.outside = p.allowed && res.Sandbox == rules.Outside
}

// named reports whether a command is the program that a rule means. One that only has the name which
// the rule allows may be a planted one, and so may a path that depends on the directory or on links.
func (r *reader) named(c *script.Command, by *rules.Match) bool {
	switch word := c.Args[0]; {
	case by.Program != "" && word != by.Program:
		return false
	case r.site == nil:
		return by.Program == "" || by.Listed || programs.OfSystem(word)
	case c.Builtin(), !r.untrusted && by.Sandbox != rules.Outside:
		return true
	}
	err := r.site.Named(c.Args)
	if by.Sandbox == rules.Outside {
		r.held = cmp.Or(r.held, err)
	}
	return err == nil
}

// safe reports whether a command is known to read only.
func (r *reader) safe(c *script.Command) bool {
	if r.site == nil {
		return programs.Safe(c.Args)
	}
	base := append([]string{path.Base(c.Args[0])}, c.Args[1:]...)
	return programs.Safe(base) && (c.Builtin() || r.site.Named(c.Args) == nil)
}

// shell reports whether a command that has the name of a shell is one, as far as that matters here.
func (r *reader) shell(command []string) bool {
	if r.site == nil {
		return programs.OfSystem(command[0])
	}
	return !r.untrusted || r.site.Named(command) == nil
}

// perhaps records the rules that prompt for a command or forbid it which may not run at all, in a
// container, or elsewhere. An allow does not count for it, and no rule narrows the sandbox.
func (r *reader) perhaps(p *Part, res rules.Result) {
	for _, m := range res.Matches {
		if m.Decision == rules.Allow {
			continue
		}
		one := ruleOf(m, true)
		r.matched(one, m.Prefix)
		if p.Rule == nil || m.Decision < p.Rule.Decision {
			p.Rule, p.Decision = &one, rules.Prompt
		}
	}
}

// partly judges a command that is not known to its last word. An allow does not count for it.
func (r *reader) partly(p *Part, c script.Command) {
	base := c // by the name of its file
	if name := path.Base(c.Args[0]); name != c.Args[0] {
		base.Args = append([]string{name}, c.Args[1:]...)
	}
	compared := &r.compared
	if c.Maybe {
		compared = &r.maybe
	}
	if *compared += len(r.restrictions()); *compared > maxCompared {
		if c.Maybe {
			return // the program is known to be another one
		}
		if r.compared-len(r.restrictions()) <= maxCompared {
			r.Unknown = append(r.Unknown, Unknown{Why: string(script.TooMany)})
		}
		return
	}
	for _, x := range r.restrictions() {
		sure := base.Begins(x.Pattern, x.Equal)
		if sure < script.Yes && base.Args[0] != c.Args[0] {
			sure = max(sure, c.Begins(x.Pattern, x.Equal))
		}
		if sure == script.No || c.Maybe && x.Decision == rules.Allow {
			continue
		}
		one := ruleOf(x.Match, sure == script.Maybe)
		r.matched(one, p.Argv[:min(len(x.Pattern), len(p.Argv))])
		kept := p.Rule
		switch {
		case x.Decision == rules.Allow:
		case !one.Maybe && (kept == nil || kept.Maybe || x.Decision < p.Decision):
			p.Decision, kept = x.Decision, new(Rule)
			*kept = one
		case one.Maybe && kept == nil:
			p.Decision, kept = rules.Prompt, new(Rule)
			*kept = one
		}
		p.Rule = kept
	}
}

func ruleOf(m rules.Match, maybe bool) Rule {
	return Rule{m.File, m.Line, m.Col, m.Decision, m.Justification, maybe, m.Sandbox}
}
