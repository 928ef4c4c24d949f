// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// An AgentError names an agent that has no such part, or is not known.
type AgentError struct {
	Agent string
	Part  Part
	Known bool // as an agent that has another part
}

// Error is a clause.
func (e *AgentError) Error() string {
	if e.Known {
		return fmt.Sprintf("%s has no contract for a %s", e.Agent, e.Part)
	}
	return fmt.Sprintf("unknown agent %q", e.Agent)
}

// Prepare reads the files of an agent and returns what installing parts makes of them, one change for a
// file. The error is an [*AgentError], or a [*RefusedError] for a file that is not what it seems.
func Prepare(o *Options, parts ...Part) ([]*Change, error) { return prepare(o, false, parts) }

// PrepareRemoval is [Prepare] for removing. Parts that are not installed change nothing.
func PrepareRemoval(o *Options, parts ...Part) ([]*Change, error) { return prepare(o, true, parts) }

func prepare(o *Options, removal bool, parts []Part) (changes []*Change, err error) {
	i := slices.IndexFunc(agents, func(a agent) bool { return a.name == o.Agent })
	if i < 0 {
		return nil, &AgentError{Agent: o.Agent}
	}
	a := &agents[i]
	for _, part := range parts {
		if part == Hook && a.hookFile == "" {
			return nil, &AgentError{o.Agent, part, true}
		}
		path, within := a.file(o, part)
		at := slices.IndexFunc(changes, func(c *Change) bool { return c.Path == path })
		if at < 0 {
			c := &Change{Path: path, within: within}
			if err := c.read(); err != nil {
				return nil, err
			}
			c.New = c.Old
			at, changes = len(changes), append(changes, c)
		}
		c := changes[at]
		w := c.work(o, a)
		if removal {
			err = c.remove(w, part)
		} else {
			err = c.install(w, part)
		}
		var refused *RefusedError
		if errors.As(err, &refused) && refused.Path == "" {
			refused.Path = path
		}
		if err != nil {
			return nil, err
		}
	}
	for _, c := range changes {
		if err := c.check(); c.Changes() && err != nil {
			return nil, c.asRefused(err)
		}
	}
	return changes, nil
}

// work returns what is known about the file.
func (c *Change) work(o *Options, a *agent) *work {
	w := &work{Options: o, agent: a, before: c.backup,
		known: c.backup != nil || c.created || c.Old == nil}
	for _, part := range []Part{MCP, Hook} {
		if part == Hook && a.hookFile == "" {
			continue
		}
		if path, _ := a.file(o, part); path == c.Path {
			w.parts = append(w.parts, part)
			w.toml = w.toml || part == MCP && a.top == ""
		}
	}
	return w
}

func (c *Change) install(w *work, part Part) error {
	if part == MCP {
		e, found, err := w.server(c.New, w.Name)
		switch {
		case err != nil:
			return err
		case found && !w.oursServer(w.Name, e) && !w.Force:
			return &RefusedError{Why: fmt.Sprintf("it has a server %q that is not ours; take another name for ours, or replace it", w.Name)}
		}
	}
	all, err := w.installed(c.Old)
	if err != nil {
		return err
	}
	c.first = c.Old != nil && len(all) == 0
	now, err := w.add(c.New, w.want(part))
	if err == nil {
		c.New = now
	}
	return err
}

func (c *Change) remove(w *work, part Part) error {
	all, err := w.installed(c.New)
	if err != nil || c.New == nil {
		return err
	}
	is := func(s spec) bool { return s.part == part && (part == Hook || s.name == w.Name) }
	if !slices.ContainsFunc(all, is) {
		if _, found, _ := w.server(c.New, w.Name); part == MCP && found {
			c.Note = fmt.Sprintf("The server %q is not ours.", w.Name)
		}
		return nil
	}
	c.ends = len(all) == 1
	c.New, err = w.remove(c.New, w.want(part))
	return err
}

// context is how many lines a diff has around a change.
const context = 3

// Diff returns the change as a unified diff, and "" for no change. Lines end with a line feed.
func (c *Change) Diff() string {
	if !c.Changes() {
		return ""
	}
	name := func(txt []byte) string {
		if txt == nil {
			return "/dev/null"
		}
		return c.Path
	}
	old, now := lines(c.Old), lines(c.New)
	out := "--- " + name(c.Old) + "\n+++ " + name(c.New) + "\n"
	steps := compare(old, now)
	for i := 0; i < len(steps); {
		if steps[i].sign == ' ' {
			i++
			continue
		}
		begin, end := max(i-context, 0), i
		for gap := 0; i < len(steps) && gap <= 2*context; i++ {
			if gap++; steps[i].sign != ' ' {
				gap, end = 0, i+1
			}
		}
		i = end
		out += hunk(steps[begin:min(end+context, len(steps))])
	}
	return out
}

// A step is a line of a diff, with the lines before it in both texts.
type step struct {
	sign     byte // ' ', '-' or '+'
	line     string
	old, now int
}

// lines splits a text. A last line without an end has a note, as diff(1) writes it.
func lines(txt []byte) (out []string) {
	for line := range bytes.Lines(txt) {
		s, ended := bytes.CutSuffix(line, []byte("\n"))
		s = bytes.TrimSuffix(s, []byte("\r"))
		if out = append(out, string(s)); !ended {
			out[len(out)-1] += "\n\\ No newline at end of file"
		}
	}
	return out
}

// compare returns the steps from one list to another. After a difference it goes on with the nearest two
// lines that both have, which is the least change for a text that something was put into or taken out of.
func compare(old, now []string) (steps []step) {
	i, j := 0, 0
	take := func(sign byte, line string) {
		steps = append(steps, step{sign, line, i, j})
		if sign != '+' {
			i++
		}
		if sign != '-' {
			j++
		}
	}
	for i < len(old) || j < len(now) {
		if i < len(old) && j < len(now) && old[i] == now[j] {
			take(' ', old[i])
			continue
		}
		a, b := meet(old[i:], now[j:])
		for range a {
			take('-', old[i])
		}
		for range b {
			take('+', now[j])
		}
	}
	return steps
}

// meet returns how many lines of both are passed before they are equal.
func meet(old, now []string) (a, b int) {
	for sum := 1; sum < len(old)+len(now); sum++ {
		for a := max(0, sum-len(now)); a <= min(sum, len(old)); a++ {
			b := sum - a
			x, y := old[a:], now[b:]
			if n := min(len(x), len(y), 2); slices.Equal(x[:n], y[:n]) && (n == 2 || len(x) == len(y)) {
				return a, b
			}
		}
	}
	return len(old), len(now)
}

func hunk(steps []step) string {
	var body string
	minus, plus := 0, 0
	for _, s := range steps {
		body += string(s.sign) + s.line + "\n"
		if s.sign != '+' {
			minus++
		}
		if s.sign != '-' {
			plus++
		}
	}
	place := func(begin, count int) string {
		if count > 0 {
			begin++ // lines count from 1
		}
		return fmt.Sprintf("%d,%d", begin, count)
	}
	return "@@ -" + place(steps[0].old, minus) + " +" + place(steps[0].now, plus) + " @@\n" + body
}
