// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package judge decides whether a command runs: from what the rules say about it and about
// everything that it may run, from the approval policy, and from what the caller asks for. It
// is pure: it looks at no file, and asks no one.
//
// Two answers are kept apart. Whether a command runs is [Decision.Answer]; where it runs is
// [Decision.Where], and an allow says nothing about that.
package judge

import (
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
)

// A Question is a command and everything that its decision depends on.
type Question struct {
	Command []string // the words; a script with its shell in front
	// Arg0 is what the program finds as its own name, which is what some programs go by; empty
	// means the first word.
	Arg0  string
	Rules *rules.Set // nil: none
	Host  rules.Host // what names of programs are resolved with
	// Site says which programs names and paths mean where the command runs. Nil means that this is
	// not known: then a bare name is the program that a rule means, and a path in /bin and /usr/bin.
	Site     Site
	Approval approval.Policy
	SafeList bool  // commands that are known to read only need no approval where others do
	Place    Place // where it would run
	Denies   bool  // something is denied there for good, see [sandbox.Policy.Denies]
	Hosts    Hosts // what leaving would lift beside files
	Ceiling  bool  // no rule may lead outside, whatever it says
	Wish     Wish  // see [Question.Want]
	Whole    bool  // Parts are wanted in any case, with what heuristics say about them
}

// A Site knows the programs of a machine.
type Site interface {
	// Named returns why a command may not be the program that its first word means, as one that
	// commands can change or one that is not found; nil if it is.
	Named(command []string) error
	// Outside returns why a command that is to run without a sandbox may run what commands can
	// change: its program, a script that it names, what a variable leads to; nil if it does not.
	Outside(command []string) error
}

// An Answer says whether a command runs. The zero Answer is Forbid.
type Answer uint8

// The answers, strictest first.
const (
	Forbid Answer = iota
	Ask           // it needs an approval
	Skip          // it needs none
)

// A Decision is the answer to a Question.
type Decision struct {
	Answer Answer
	// Reason is a clause for people and models; empty for Skip.
	Reason string
	// Rule is the rule that decided, nil if none did. A rule that allows decides where all of
	// the command is allowed by rules.
	Rule *Rule
	// Where is what the rules say about the sandbox: the strictest place inside of it that any
	// rule says which matches or may match, or Outside if all that may run is known and allowed
	// outside of it, and leaving lifts nothing but files. Unsaid leaves it as it is.
	Where rules.Sandbox
	// Wish is what the caller asks for, Stay where that has no effect: where nothing confines the
	// command, and for Leave where something is denied for good.
	Wish Wish
	// Retry is what may be asked after a denial; RetryNone for Forbid.
	Retry Retry
	// Held is why a rule that leads outside did not, although it matches: a program that commands can
	// change is not the one that it means, or hosts are judged. Nil if none was held.
	Held error
	// Parts is nil where nothing depends on them: without rules, in a sandbox that restricts
	// files, unless every command is asked about or it is to leave.
	Parts *Parts
	// Err holds the rules that do not load, see [rules.Set.Err]. The Answer is Forbid then.
	Err error

	state state
	hosts Hosts
}

// Judge answers a question.
func Judge(q *Question) Decision {
	if err := q.Rules.Err(); err != nil {
		return Decision{Reason: "rules do not load", Err: err}
	}
	if len(q.Command) == 0 {
		return Decision{Reason: "there is no command"}
	}
	policy := bits(q.Approval)
	heuristics := policy&untrusted != 0 || q.Place != Restricted || q.Wish == Leave || q.Whole
	if q.Rules.Empty() && !heuristics {
		return q.settle(&Decision{}, policy|plain, nil)
	}
	r := reader{set: q.Rules, host: q.Host, site: q.Site, untrusted: policy&untrusted != 0,
		heuristics: heuristics}
	r.read(q.Command)
	if q.Arg0 != "" && q.Arg0 != q.Command[0] {
		r.read(append([]string{q.Arg0}, q.Command[1:]...))
	}
	d := &Decision{Parts: &r.Parts}
	d.Where, d.Rule = r.where(q.Command)
	d.Held = r.held
	return q.settle(d, policy|r.class(q.SafeList), &r)
}

// settle completes a decision by the table. The reader is nil for a command without parts.
func (q *Question) settle(d *Decision, s state, r *reader) Decision {
	q.lead(d)
	around, wish := q.around(d.Where)
	d.state, d.Wish, d.hosts = s|around, wish, q.Hosts
	by, retry := settle(d.state)
	t := &table[by]
	d.Answer, d.Reason, d.Retry = t.answer, t.reason, retries[retry].retry
	if t.says != nil {
		d.Reason = t.says(q, r)
	}
	if d.Rule != nil && t.answer == Ask && t.when&stays == 0 &&
		(d.Where == rules.ReadOnly || d.Where == rules.WorkspaceWrite) {
		d.Reason += fmt.Sprintf(", although a rule says sandbox=%s", d.Where)
	}
	switch {
	case t.answer != Skip && t.when&stays == 0:
		d.Rule = nil // the wish decided
	case s&(forbidden|prompted) != 0:
		d.Rule = nil
		if r.by != nil {
			d.Rule = &r.by.Rule
		}
	case t.answer == Skip && d.Rule == nil && r != nil && every(r.Commands, isAllowed):
		by := r.said[kind{rules.Allow, false}]
		d.Rule = &by.Rule
	}
	return *d
}

func isAllowed(p Part) bool { return p.allowed }

// class is what is known of a command. It sets the rule that is against it, or may be.
func (r *reader) class(safeList bool) state {
	for _, k := range []kind{{rules.Forbid, false}, {rules.Prompt, false}, {rules.Prompt, true},
		{rules.Forbid, true}} {
		if by, ok := r.said[k]; ok {
			r.by = &by
			if k.decision == rules.Forbid && !k.maybe {
				return forbidden
			}
			return prompted
		}
	}
	switch {
	case r.unknownPrompts():
		return prompted
	case r.force() != nil:
		return dangerous
	case r.alien:
		return plain
	case every(r.Commands, isAllowed):
		return allowed
	case safeList && every(r.Commands, func(p Part) bool { return p.allowed || p.Safe }):
		return safe
	}
	return plain
}

// force returns the first part that removes without asking, and that no rule is about.
func (r *reader) force() *Part {
	for _, parts := range [][]Part{r.Commands, r.Runs} {
		for i, p := range parts {
			if p.Danger && p.Rule == nil {
				return &parts[i]
			}
		}
	}
	return nil
}

// where returns what the rules say about the sandbox, and the rule that says so. Any rule can
// narrow it, also one that only may match; leaving it takes a rule for everything, and that nothing
// of it is what commands can change.
func (r *reader) where(command []string) (rules.Sandbox, *Rule) {
	if len(r.Unknown) > 0 {
		for _, x := range r.restrictions() {
			r.narrows(ruleOf(x.Match, true))
		}
	}
	outside := func(p Part) bool { return p.outside }
	switch {
	case r.narrow != nil:
		return r.narrow.Sandbox, r.narrow
	case r.Opaque || r.alien || len(r.Unknown) > 0 || !every(r.Commands, outside) || !every(r.Runs, outside):
		return rules.Unsaid, nil
	}
	if r.site != nil {
		if r.held = r.site.Outside(command); r.held != nil {
			return rules.Unsaid, nil
		}
	}
	by := r.said[kind{rules.Allow, false}]
	return rules.Outside, &by.Rule
}

func every(parts []Part, is func(Part) bool) bool {
	for _, p := range parts {
		if !is(p) {
			return false
		}
	}
	return true
}

// rejected is the reason of a rule that forbids.
func (q *Question) rejected(r *reader) string {
	if r.by.Justification != "" {
		return fmt.Sprintf("`%s` rejected: %s", typed(q.Command), text.Line(r.by.Justification))
	}
	return fmt.Sprintf("`%s` rejected: policy forbids commands starting with `%s`", typed(q.Command),
		typed(r.by.prefix))
}

// requires is the reason of a rule that prompts, or that forbids what the command only may be.
func (q *Question) requires(r *reader) string {
	why := " by policy"
	switch by := r.by; {
	case by == nil:
		why = fmt.Sprintf(": it may run commands that are not known (%s), and rules restrict some",
			r.Unknown[0].Why)
	case by.Decision == rules.Forbid:
		why = fmt.Sprintf(": it may run `%s`, which policy forbids", typed(by.prefix))
	case by.Justification != "":
		why = ": " + text.Line(by.Justification)
	}
	return fmt.Sprintf("`%s` requires approval%s", typed(q.Command), why)
}

// removes is the reason for what removes without asking and may not be asked about.
func (q *Question) removes(*reader) string {
	return fmt.Sprintf("`%s` rejected: %s", typed(q.Command), noForce)
}

// force is the reason for what removes without asking.
func (q *Question) force(r *reader) string {
	return fmt.Sprintf("`%s` removes without asking", typed(r.force().Argv))
}

// unknown is the reason for a command that is not known to be harmless.
func (q *Question) unknown(r *reader) string {
	if r.alien {
		return fmt.Sprintf("`%s` is not a shell of the system", text.Line(q.Command[0]))
	}
	for _, p := range r.Commands {
		if !p.allowed && !(q.SafeList && p.Safe) {
			return fmt.Sprintf("no rule allows `%s`, and it is not known to read only", typed(p.Argv))
		}
	}
	return ""
}

// maxLine is how many bytes of a command stand in a reason.
const maxLine = 4000

// typed returns words as one would type them, on one line.
func typed(words []string) string {
	line := rules.JoinWords(words)
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	return text.Line(line)
}
