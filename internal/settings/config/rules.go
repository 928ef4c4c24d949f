// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/rules/files"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// ReadOnlyRules reports whether commands that are known to only read run without approval.
func (e *Effective) ReadOnlyRules() bool {
	return slices.Contains(e.Values["rules"].Texts(), BuiltinReadOnly)
}

// Rules returns the rule files that count, the lowest layer first: those in the directories
// named rules, and those that settings and flags name. The first call reads the latter; files that
// cannot be read are sources with an error.
//
// A file that commands can change does not load, because a rule can have a command run outside of
// the sandbox. One that a flag names, and no setting, can then only narrow, and a note says so.
func (e *Effective) Rules() []rules.Source {
	if e.rules != nil {
		return slices.Clone(e.rules)
	}
	sources := slices.Clone(e.config.sources)
	var where *reach.Reach
	for _, s := range e.Values["rules"].Settings {
		if s.Text == BuiltinReadOnly {
			continue
		}
		name, dir := Expand(s.Text, e.config.in.Home), e.config.in.Dir
		if s.Origin.Layer == User || s.Origin.Layer == Managed {
			dir = filepath.Dir(s.Origin.File)
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if where == nil {
			where = e.Reach()
		}
		switch err := where.Of(name); {
		case err == nil:
			sources = append(sources, files.Read(name))
		case s.Origin.Layer == Flags:
			source := files.Read(name)
			source.Narrow = true
			sources = append(sources, source)
			e.Notes = append(e.Notes,
				fmt.Sprintf("--rules: what the file allows does not count, because %v; move it to another directory", err))
		default:
			sources = append(sources, rules.Source{Name: name,
				Err: fmt.Errorf("%w, and settings name it; move it to another directory", err)})
		}
	}
	e.rules = append([]rules.Source{}, sources...)
	return sources
}

// Reach returns what commands can change under these settings and under others that they hold, as
// far as that is known before there is a command.
func (e *Effective) Reach() *reach.Reach { return reach.New(e.Area()) }

// Area is what [Effective.Reach] knows.
func (e *Effective) Area() reach.Area {
	tmp := e.Values["tmp"].Text()
	return reach.Area{Policy: sandbox.ReadOnly(), Workspace: e.config.in.Dir, HostTmp: tmp == "host",
		Writable: e.Writable()}
}

// Writable returns the places that commands can write to under these settings, or when one of
// their profiles is chosen: absolute paths, without the workspace and its /tmp.
func (e *Effective) Writable() []string {
	var texts []string
	for _, l := range e.layers {
		for _, values := range []Values{l.values, l.opened} {
			texts = append(texts, e.writes(values)...)
		}
	}
	for _, p := range e.config.profiles {
		texts = append(texts, e.writes(p.values)...)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// writes returns the absolute paths that values make writable.
func (e *Effective) writes(values Values) []string {
	var out []string
	for _, s := range slices.Concat(values["write"], values["tmp"]) {
		name := Expand(s.Text, e.config.in.Home)
		switch {
		case s.Text == placeHome:
			name = e.config.in.Home
		case len(s.Text) > 0 && s.Text[0] == ':', s.Text == "host", s.Text == "private", s.Text == "":
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(e.config.in.Dir, name)
		}
		out = append(out, name)
	}
	return out
}
