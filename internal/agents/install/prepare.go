// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"path/filepath"
	"slices"
)

// Prepare reads the files of an agent and returns what installing parts, or removing them, makes of them: one
// change for a file. Parts that are not installed are not removed. The agent must be one of [Agents] for all
// parts. The error is a [*RefusedError] for a file that is not what it seems.
func Prepare(o *Options, remove bool, parts ...Part) (changes []*Change, err error) {
	a := &agents[slices.IndexFunc(agents, func(a agent) bool { return a.name == o.Agent })]
	for _, part := range parts {
		path, within := a.file(o, part)
		if !filepath.IsAbs(path) {
			return nil, &RefusedError{Path: path, Why: a.variable + " is a relative path, which is " +
				"another directory wherever the agent starts; set it to an absolute one"}
		}
		at := slices.IndexFunc(changes, func(c *Change) bool { return c.Path == path })
		if at < 0 {
			at, changes = len(changes), append(changes, &Change{Path: path, within: within})
			err = changes[at].read()
		}
		if err == nil {
			err = changes[at].part(o, a, part, remove)
		}
		if err == nil && changes[at].Changes() {
			err = changes[at].check()
		}
		if err != nil {
			return nil, changes[at].refused(err)
		}
	}
	return changes, nil
}

// part installs or removes a part.
func (c *Change) part(o *Options, a *agent, part Part, remove bool) (err error) {
	w := &work{Options: o, agent: a, before: c.backup, known: c.backup != nil || c.created || c.Old == nil}
	for _, other := range []Part{MCP, Hook} {
		if path, _ := a.file(o, other); path == c.Path {
			w.parts = append(w.parts, other)
		}
	}
	w.toml = a.top == "" && slices.Contains(w.parts, MCP)
	if !remove {
		has, err := w.hasAny(c.Old)
		if err != nil {
			return err
		}
		c.first = c.Old != nil && !c.created && !has
		c.New, err = w.add(c.New, part)
		return err
	}
	if is, err := w.has(c.New, part, false); !is || err != nil {
		return err
	}
	if c.New, err = w.remove(c.New, part); err != nil {
		return err
	}
	has, err := w.hasAny(c.New)
	c.ends = !has
	return err
}

// hasAny reports whether anything of ours is in a text.
func (w *work) hasAny(txt []byte) (bool, error) {
	for _, part := range w.parts {
		if has, err := w.has(txt, part, true); has || err != nil {
			return has, err
		}
	}
	return false, nil
}
