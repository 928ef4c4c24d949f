// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/userdirs"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/rules/files"
)

// ReadOnlyRules reports whether commands that are known to only read run without approval.
func (e *Effective) ReadOnlyRules() bool {
	return slices.Contains(e.Values["rules"].Texts(), BuiltinReadOnly)
}

// errInReach says that settings name rules which a command could have written: a rule can have one
// run outside of the sandbox.
var errInReach = errors.New("it is in the workspace, where commands can write, and settings name it; move it to another directory")

// Rules returns the rule files that count, the lowest layer first: those in the directories
// named rules, and those that settings and flags name. It reads the latter; files that cannot
// be read are sources with an error.
func (e *Effective) Rules() []rules.Source {
	sources := slices.Clone(e.config.sources)
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
		if s.Origin.Layer != Flags && userdirs.InReach(name, e.config.in.Dir) != nil {
			sources = append(sources, rules.Source{Name: name, Err: errInReach})
			continue
		}
		sources = append(sources, files.Read(name))
	}
	return sources
}
