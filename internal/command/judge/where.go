// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Confine returns the policy for a command about which the rules say where. P is bound to
// places; so is the result. ReadOnly and WorkspaceWrite give what both p and the preset allow:
// nothing becomes wider, deny entries stay, network and grants go. A policy that is such a
// preset or a narrower one, whatever was granted beside it, stays as it is. Outside is a matter
// of [Outside].
func Confine(p sandbox.Policy, where rules.Sandbox, places sandbox.Places) (sandbox.Policy, error) {
	preset := sandbox.ReadOnly()
	switch {
	case where == rules.ReadOnly && basis(p) == "read-only":
		return p, nil
	case where == rules.ReadOnly:
	case where == rules.WorkspaceWrite && basis(p) != "read-only" && basis(p) != "workspace-write":
		preset = sandbox.WorkspaceWrite()
	default:
		return p, nil
	}
	preset = preset.Bind(places)
	if p.Mode() != sandbox.Managed {
		return preset, nil
	}
	return both(p, preset)
}

// basis is the name of the preset that the policy equals apart from its deny entries.
func basis(p sandbox.Policy) string {
	if !p.Denies() {
		return p.Name()
	}
	var entries []sandbox.Entry
	for _, e := range p.Entries() {
		if e.Level != sandbox.LevelDeny {
			entries = append(entries, e)
		}
	}
	rest, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone, entries...)
	if err != nil {
		return "custom"
	}
	return rest.Name()
}

// both returns what two managed policies that are bound allow both. The preset denies nothing.
func both(p, preset sandbox.Policy) (sandbox.Policy, error) {
	var entries []sandbox.Entry
	add := func(e sandbox.Entry, other sandbox.Policy) {
		if name, ok := e.Place.Absolute(); ok {
			e.Level = min(e.Level, other.LevelAt(name))
		} else if e.Level != sandbox.LevelDeny {
			return // a place that is not known here
		}
		entries = append(entries, e)
	}
	for _, e := range p.Entries() {
		add(e, preset)
	}
	for _, e := range preset.Entries() {
		// Where p denies by having no entry, one that denies could not be granted later.
		if name, ok := e.Place.Absolute(); ok && p.LevelAt(name) > sandbox.LevelDeny {
			add(e, p)
		}
	}
	narrow, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone, entries...)
	return narrow.WithGlobScanDepth(p.GlobScanDepth()), err
}
