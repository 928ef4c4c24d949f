// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal asks for approval on the controlling terminal of this process.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// An Approver asks on the terminal, one question at a time. It passes where there is no
// terminal. Before a question about a command that has run, it brings the terminal into its usual
// state: the main screen, no modes, margins or colors of the command. The zero Approver is ready.
type Approver struct {
	// Around, if not nil, is called with each question and calls ask: it can put away what
	// another program shows on the terminal meanwhile.
	Around func(ask func())
	// Keep, if not nil, is called with a host and its port that a person wants open in this project from
	// now on, which questions about hosts offer then. The answer is one for the session.
	Keep func(host string)
	// Direct says that commands write to the terminal themselves, so that the state in which they leave
	// it is not known. False is for commands whose output Around, or none, has followed.
	Direct bool

	mu sync.Mutex
}

// Approve shows the question and waits for the answer. End of file, a hang-up and four other
// answers deny.
func (a *Approver) Approve(ctx context.Context, r *approval.Request) (d approval.Decision, err error) {
	if err := strict.CheckContext(ctx); err != nil {
		return d, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return d, err // it was withdrawn while another question was open
	}
	around := a.Around
	if around == nil {
		around = func(ask func()) { ask() }
	}
	around(func() { d, err = a.ask(ctx, r) })
	return d, err
}

func (a *Approver) ask(ctx context.Context, r *approval.Request) (d approval.Decision, err error) {
	t, err := tty.OpenPrompt(ctx)
	if errors.Is(err, tty.ErrNoTerminal) {
		return d, approval.ErrPass
	}
	if err != nil {
		return d, err
	}
	defer func() {
		if errors.Is(context.Cause(ctx), approval.ErrAnswered) && err != nil {
			t.Withdraw("answered elsewhere")
		}
		err = errors.Join(err, t.Close())
	}()
	if r.Runs > 0 { // then the command may have written to the terminal
		if err := t.Reset(a.Direct); err != nil {
			return d, err
		}
	}
	if err := show(t, r); err != nil {
		return d, err
	}
	key, err := t.Ask(a.choices(r)...)
	if err != nil {
		return d, err
	}
	if key == keepKey {
		d = r.Decide(approval.ApprovedForSession)
		a.Keep(strings.TrimPrefix(r.Requires[0], "host:"))
	}
	if key == directoryKey {
		d = r.DecideOn(approval.Approved, r.Directory())
	}
	for _, l := range letters {
		if l.key == key {
			d = r.Decide(l.answer)
		}
	}
	d.Source = approval.FromUser
	return d, nil
}

// letters are the answers, in the order in which they are offered.
var letters = []struct {
	key    string
	words  []string
	answer approval.Answer
	text   string
}{
	{"y", []string{"yes", "once"}, approval.Approved, "once"},
	{"s", []string{"session"}, approval.ApprovedForSession, "for this session"},
	{"r", []string{"rule"}, approval.ApprovedRule, "remember the rule"},
	{"h", []string{"host"}, approval.ApprovedHost, "remember the host"},
	{"n", []string{"no", "deny"}, approval.Denied, "deny"},
	{"a", []string{"abort"}, approval.Abort, "abort"},
}

// keepKey is the letter of [Approver.Keep], and directoryKey that of a directory that is offered.
const (
	keepKey      = "p"
	directoryKey = "d"
)

// choices returns the answers that a question takes.
func (a *Approver) choices(r *approval.Request) []tty.Choice {
	var out []tty.Choice
	for _, l := range letters {
		d := r.Decide(l.answer)
		if !r.Takes(&d) {
			continue
		}
		out = append(out, tty.Choice{Key: l.key, Words: l.words, Text: l.text})
		if l.answer == approval.ApprovedHost && a.Keep != nil && r.Kind == approval.KindNetwork &&
			len(r.Requires) == 1 {
			out = append(out, tty.Choice{Key: keepKey, Words: []string{"project"},
				Text: "always in this project"})
		}
		if dir := r.Directory(); l.answer == approval.ApprovedForSession && dir != "" {
			out = append(out, tty.Choice{Key: directoryKey, Words: []string{"directory"},
				Text: "all below " + text.Word(dir)})
		}
	}
	return out
}

// show shows all that a question is about.
func show(t *tty.Prompt, r *approval.Request) error {
	shown := t.Show("\nsallyport: " + headline(r) + "\n")
	describe(r, func(text string) {
		if shown == nil {
			shown = t.Show(text)
		}
	}, func(text string) {
		if shown == nil {
			shown = t.Quote(text)
		}
	})
	return shown
}

// Text returns all that a question is about, for people who are not in front of the terminal.
// Words of others have a mark on each of their lines.
func Text(r *approval.Request) string {
	var b strings.Builder
	b.WriteString(headline(r) + "\n")
	describe(r, func(text string) { b.WriteString(text) }, func(s string) {
		for line := range strings.Lines(text.Lines(s)) {
			b.WriteString(tty.PromptMark + line)
		}
	})
	return b.String()
}

// describe passes on what a question is about: lines of sallyport's own, and words of others.
func describe(r *approval.Request, show, cite func(text string)) {
	own := func(format string, args ...any) { show(fmt.Sprintf(format, args...) + "\n") }
	quote := func(text string) {
		if text != "" {
			cite(strings.TrimSuffix(text, "\n") + "\n")
		}
	}
	if r.Script != "" {
		quote(r.Script)
	} else {
		quote(Words(r.Args))
	}
	own("in %s", text.Word(r.Dir))
	if r.Program != "" {
		own("program: %s", text.Word(r.Program))
	}
	for _, line := range r.Given() {
		own("%s", line)
	}
	if r.Environment != "" {
		own("on: %s", text.Word(r.Environment))
	}
	if r.Reason != "" {
		own("reason: %s", text.Line(r.Reason))
	}
	if r.Justification != "" {
		own("the caller says:")
		quote(r.Justification)
	}
	for _, d := range r.Denials {
		own("was denied: %s", text.Line(d.String()))
	}
	for _, need := range r.Requires {
		own("would open: %s", opens(need))
	}
	if r.Waiting {
		own("It waits %v for an answer; without one the access is denied.",
			time.Duration(r.WaitMS)*time.Millisecond)
	}
	if r.Runs > 0 {
		own("It ran already (%d), and what it did then is done again.", r.Runs)
	}
	for _, o := range r.Offers {
		switch o.Answer {
		case approval.ApprovedRule:
			own("rule that can be remembered: commands that begin with")
			quote(Words(o.Rule))
		case approval.ApprovedHost:
			if !o.Deny { // an approver that is no person may take that
				own("host that can be remembered: %s, for %s, on every port", text.Word(o.Host), o.Protocol)
			}
		}
	}
}

// headline says what is asked.
func headline(r *approval.Request) string {
	switch {
	case r.Kind == approval.KindNetwork:
		return "may this command reach a host?"
	case r.Waiting:
		return "may this command, which is waiting, do what its sandbox denies?"
	case r.Kind == approval.KindPatch:
		return "may this patch change files?"
	case len(r.Requires) > 0 && r.Requires[0] == approval.Outside:
		return "may this command run OUTSIDE of the sandbox?"
	case len(r.Requires) > 0:
		return "may this command be given more?"
	}
	return "may this command run?"
}

// opens says in words what a requirement opens.
func opens(need string) string {
	switch need {
	case approval.Outside:
		return "everything that this user may do, files and network: it runs without a sandbox"
	case approval.Network:
		return "every host: the network policy, which judges hosts in the sandbox, ends"
	}
	what, value, _ := strings.Cut(need, ":")
	return map[string]string{
		"write": "writing to ", "read": "reading ", "host": "the host ", "grant": "the grant ", "allow": "what is closed by default: ",
	}[what] + text.Word(value)
}

// Words shows a command on one line; a line break in a word is escaped, as all that is not
// printable.
func Words(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = text.Line(a); a == "" || strings.ContainsAny(a, " '\"\\$`|&;<>()*?[]{}#~\t\n") {
			out[i] = "'" + strings.ReplaceAll(text.Line(a), "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}
