// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// checkProfiles checks what all profiles extend, also those that are not used.
func (c *Config) checkProfiles() error {
	for _, name := range slices.Sorted(maps.Keys(c.profiles)) {
		if _, _, err := c.chain(Setting{Text: name}); err != nil {
			return err
		}
	}
	for _, l := range slices.Concat(c.managed, c.layers) {
		s := l.values["sandbox"]
		if len(s) == 0 {
			continue
		}
		if _, _, err := c.chain(s[0]); err != nil {
			return err
		}
		if _, mode := bases[s[0].Text]; !mode && (l.kind == Project || l.kind == Managed) {
			return s[0].Origin.fail("sandbox: %s is a profile; here it must be a mode, such as read-only",
				quoted(s[0].Text))
		}
	}
	return nil
}

// chain returns what a value of sandbox stands for: a mode, and the profiles on top of it, the
// lowest first.
func (c *Config) chain(s Setting) (base string, profiles []*profile, err error) {
	base = NoBase
	if s.Text == NoBase && s.Origin.Layer == Flags { // of a client's policy
		return base, nil, nil
	}
	for next := &s; next != nil; {
		if mode, ok := bases[next.Text]; ok {
			base = mode
			break
		}
		p := c.profiles[next.Text]
		if p == nil {
			return "", nil, c.unknown(*next)
		}
		if slices.Contains(profiles, p) {
			var names []string
			for _, p := range profiles[slices.Index(profiles, p):] {
				names = append(names, p.name)
			}
			return "", nil, next.Origin.fail("extends: the profiles extend each other in a circle (%s); remove one extends", strings.Join(append(names, p.name), " -> "))
		}
		profiles = append(profiles, p)
		next = p.extends
	}
	slices.Reverse(profiles)
	return base, profiles, nil
}

// unknown is the error for a profile that there is none of.
func (c *Config) unknown(s Setting) error {
	text := "unknown profile " + quoted(s.Text) + syntax.NearestClause(s.Text, c.Profiles(),
		"sallyport config show lists the profiles")
	if s.Origin.Layer == Flags {
		return &FlagError{Text: s.Origin.File + ": " + text}
	}
	return s.Origin.fail("%s", text)
}

// Profiles returns the names that sandbox takes, modes first.
func (c *Config) Profiles() []string {
	return append([]string{ReadOnly, WorkspaceWrite, FullAccess, Minimal},
		slices.Sorted(maps.Keys(c.profiles))...)
}

// covers reports whether a mode allows all that another one does.
func covers(a, b string) bool {
	switch a {
	case FullAccess:
		return true
	case WorkspaceWrite:
		return b != FullAccess
	case ReadOnly, Minimal:
		return b == a || b == NoBase
	}
	return a == b
}

// narrower returns what both modes allow.
func narrower(a, b string) string {
	switch {
	case covers(a, b):
		return b
	case covers(b, a):
		return a
	}
	return NoBase
}

// merged returns the values of profiles, the lowest first. Lists are added, the last one of
// other values counts.
func merged(profiles []*profile) Values {
	out := Values{}
	for _, p := range profiles {
		for name, v := range p.values {
			if Find(name).IsList() {
				out[name] = append(out[name], v...)
			} else {
				out[name] = v
			}
		}
	}
	return out
}

// denials returns what no other mode or profile takes away: denied paths, and the network.
func (v Values) denials() Values {
	out := Values{}
	for _, name := range []string{"deny", "network.mode"} {
		if len(v[name]) > 0 {
			out[name] = v[name]
		}
	}
	return out
}
