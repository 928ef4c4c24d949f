// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/rules/files"
)

// A Question is a command and the rules to ask.
type Question struct {
	Command []string
	// Layers holds the rules of the configuration, the lowest layer first.
	Layers []rules.Source
	// Files names more rule files, which count after Layers. Relative names begin at Host.Dir.
	Files []string
	Host  rules.Host
	// Resolve lets the base name of the program count, see [rules.Set.Resolve].
	Resolve bool
	// Brief leaves out of what commands it consists, which takes longer than the decision.
	Brief bool
	// Site says which programs are meant where the command would run; nil means by their names.
	Site judge.Site
}

// An Answer is what the rules say. Its JSON form is that of codex execpolicy check.
type Answer struct {
	MatchedRules []MatchedRule `json:"matchedRules"`
	Decision     string        `json:"decision,omitempty"` // empty if no rule matches

	result rules.Result
}

// A MatchedRule is one rule that matches.
type MatchedRule struct {
	PrefixRuleMatch PrefixRuleMatch `json:"prefixRuleMatch"`
}

// A PrefixRuleMatch is one prefix rule that matches.
type PrefixRuleMatch struct {
	MatchedPrefix   []string `json:"matchedPrefix"`
	Decision        string   `json:"decision"`
	ResolvedProgram string   `json:"resolvedProgram,omitempty"`
	Justification   string   `json:"justification,omitempty"`
	Sandbox         string   `json:"sandbox,omitempty"` // an extension: what the rule says about where
}

// Ask returns what the rules say. If a file does not load, the error is or holds
// [rules.LoadError]s and there is no answer.
func Ask(q Question) (*Answer, error) {
	set := rules.Load(q.Host, slices.Concat(q.Layers, q.Read())...)
	if err := set.Err(); err != nil {
		return nil, err
	}
	a := &Answer{MatchedRules: []MatchedRule{}}
	if q.Resolve {
		a.result = set.Resolve(q.Command, q.Host)
	} else {
		a.result = set.Check(q.Command)
	}
	for _, m := range a.result.Matches {
		a.MatchedRules = append(a.MatchedRules,
			MatchedRule{PrefixRuleMatch{m.Prefix, m.Decision.String(), m.Program, m.Justification,
				m.Sandbox.String()}})
		a.Decision = a.result.Decision.String()
	}
	return a, nil
}

// Read returns the rules of Files.
func (q *Question) Read() (sources []rules.Source) {
	for _, name := range q.Files {
		source := files.Read(inside(q.Host.Dir, name))
		source.Name = name
		sources = append(sources, source)
	}
	return sources
}

// inside returns a path that begins at a directory, unless it is absolute.
func inside(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// String returns the answer for people: a sentence, and the rules with their places.
func (a *Answer) String() string {
	if len(a.MatchedRules) == 0 {
		return "No rule matches this command.\n"
	}
	s := map[rules.Decision]string{
		rules.Forbid: "The rules forbid this command",
		rules.Prompt: "The rules ask before they allow this command",
		rules.Allow:  "The rules allow this command",
	}[a.result.Decision]
	switch a.result.Sandbox {
	case rules.Unsaid:
	case rules.Outside:
		s += ", outside of the sandbox"
	default:
		s += ", in the sandbox " + a.result.Sandbox.String()
	}
	var b strings.Builder
	b.WriteString(s + ".\n")
	for _, m := range a.result.Matches {
		fmt.Fprintf(&b, "  %-9s  %s  (%s)\n", m.Decision, words(m.Prefix), text.Line(m.String()))
		if m.Program != "" {
			fmt.Fprintf(&b, "%13sbecause the program is %s\n", "", text.Word(m.Program))
		}
		for line := range strings.Lines(m.Justification) {
			fmt.Fprintf(&b, "%13s%s\n", "", text.Line(strings.TrimSpace(line)))
		}
	}
	return b.String()
}

// words shows the words of a command on one line.
func words(command []string) string {
	shown := make([]string, len(command))
	for i, word := range command {
		if shown[i] = text.Word(word); strings.ContainsAny(word, " '\"\\") && shown[i] == word {
			shown[i] = fmt.Sprintf("%q", word)
		}
	}
	return strings.Join(shown, " ")
}

// ExplainCheck returns the text for an error of [Ask]: for each file what could not be done, the
// calls that led to it, the reason and its place. Codex writes the same, and its clients
// read it. The last lines name places that are relative by their absolute paths.
func ExplainCheck(err error, dir string) string {
	var b, last strings.Builder
	for _, e := range loadErrors(err) {
		what := "parse"
		if e.Unread {
			what = "read"
		}
		fmt.Fprintf(&b, "Error: failed to %s policy at %s\n\nCaused by:\n", what, text.Line(e.File))
		if len(e.Stack) > 0 {
			b.WriteString("    Traceback (most recent call last):\n")
		}
		for _, frame := range e.Stack {
			fmt.Fprintf(&b, "      * %s:%d, in %s\n", text.Line(frame.File), frame.Line,
				text.Line(frame.Function))
		}
		if e.Line > 0 {
			fmt.Fprintf(&b, "    error: %s\n     --> %s\n\n", text.Line(e.Text), text.Line(e.String()))
		} else {
			fmt.Fprintf(&b, "    %s\n\n", text.Line(e.Text))
		}
		if at := e.Pos; !filepath.IsAbs(at.File) {
			at.File = inside(dir, at.File)
			fmt.Fprintf(&last, "sallyport: %s: %s\n", text.Line(at.String()), text.Line(e.Text))
		}
	}
	return strings.TrimRight(b.String()+last.String(), "\n") + "\n"
}

// loadErrors returns the errors that err is made of.
func loadErrors(err error) (all []*rules.LoadError) {
	var many interface{ Unwrap() []error }
	var one *rules.LoadError
	switch {
	case errors.As(err, &many):
		for _, err := range many.Unwrap() {
			all = append(all, loadErrors(err)...)
		}
	case errors.As(err, &one):
		all = append(all, one)
	}
	return all
}
