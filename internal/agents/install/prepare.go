// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
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

// Prepare reads the files of an agent and returns what installing parts, or removing them, makes of them: one
// change for a file. Parts that are not installed are not removed. The error is an [*AgentError], or a
// [*RefusedError] for a file that is not what it seems.
func Prepare(o *Options, remove bool, parts ...Part) (changes []*Change, err error) {
	i := slices.IndexFunc(agents, func(a agent) bool { return a.name == o.Agent })
	if i < 0 {
		return nil, &AgentError{Agent: o.Agent, Part: parts[0]}
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
				return nil, c.refused(err)
			}
			at, changes = len(changes), append(changes, c)
		}
		if err := changes[at].part(o, a, part, remove); err != nil {
			return nil, changes[at].refused(err)
		}
	}
	for _, c := range changes {
		if err := c.check(); c.Changes() && err != nil {
			return nil, c.refused(err)
		}
	}
	return changes, nil
}

// part installs or removes a part.
func (c *Change) part(o *Options, a *agent, part Part, remove bool) error {
	w := &work{Options: o, agent: a, before: c.backup, known: c.backup != nil || c.created || c.Old == nil}
	others := false // something of ours is in the file
	for _, other := range []Part{MCP, Hook} {
		if path, _ := a.file(o, other); path == c.Path {
			w.parts = append(w.parts, other)
		}
	}
	w.toml = a.top == "" && slices.Contains(w.parts, MCP)
	count := func(txt []byte) (others bool, err error) {
		for _, p := range w.parts {
			has, err := w.has(txt, p, true)
			if others = others || has; err != nil {
				return false, err
			}
		}
		return others, nil
	}
	is, err := w.has(c.New, part, false)
	if err != nil {
		return err
	}
	if !remove {
		if others, err = count(c.Old); err != nil {
			return err
		}
		c.first = c.Old != nil && !others
		c.New, err = w.add(c.New, part)
		return err
	}
	if is {
		if c.New, err = w.remove(c.New, part); err == nil {
			others, err = count(c.New)
			c.ends = !others
		}
	}
	return err
}
