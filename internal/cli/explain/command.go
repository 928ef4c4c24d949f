// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"path"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// outside is the suggestion that is no flag of a sandbox. No command line is printed with it.
const outside = "-s full-access"

// AllowingCommand returns the command line of a run with the least flags that allow what can
// be allowed; nil when none would change anything. It works in the current directory.
func AllowingCommand(r Record, here string) []string {
	added := suggestions(r.Denials())
	if len(added) == 0 || len(r.Args) == 0 {
		return nil
	}
	words := []string{"sallyport", "run"}
	placed := false
	for i := 0; i < len(r.Flags); i++ {
		f := config.FindFlag(r.Flags[i])
		if f == nil || f.Value == "" || i+1 == len(r.Flags) {
			words = append(words, r.Flags[i])
			continue
		}
		flag, value := r.Flags[i], r.Flags[i+1]
		i++
		if f.Long == "cd" {
			placed = true
			if !path.IsAbs(value) {
				value = r.Dir // as from where it was run
			}
		}
		replaced := func(pair []string) bool { // of two entries the stricter one would hold
			return slices.Equal(pair, []string{flag, value}) || flag == "--ro" &&
				slices.Equal(pair, []string{"--rw", absolute(r.Dir, value)}) || f.Long == "net" &&
				(pair[0] == flag || value == config.NetNone && pair[0] == "--allow-host")
		}
		if !slices.ContainsFunc(added, replaced) {
			words = append(words, flag, value)
		}
	}
	if !placed && path.IsAbs(r.Dir) && r.Dir != here {
		words = slices.Insert(words, 2, "-C", r.Dir)
	}
	return append(append(append(words, slices.Concat(added...)...), "--"), r.Args...)
}

// absolute is a path in a flag of a run in a directory.
func absolute(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// KeepingCommand returns the command line that adds to the settings of the project what would allow the
// denials of a run; nil when no setting would. It works in the current directory.
func KeepingCommand(r Record, here string) []string {
	kept := slices.DeleteFunc(suggestions(r.Denials()),
		func(pair []string) bool { return !slices.Contains(keeping, pair[0]) })
	if len(kept) == 0 {
		return nil
	}
	words := []string{"sallyport", "config", "allow"}
	if path.IsAbs(r.Dir) && r.Dir != here {
		words = append(words, "-C", r.Dir)
	}
	return append(words, slices.Concat(kept...)...)
}

// keeping are the flags of config allow that suggestions may have.
var keeping = []string{"--rw", "--ro", "--grant", "--allow", "--allow-host", "--net"}

// suggestions returns the least flags that would allow denials, as pairs of a flag and its
// value: grants in the order in which they first appear, without those that others include,
// then wider flags.
func suggestions(ds []sandbox.Denial) [][]string {
	var grants []sandbox.Grant
	var wider, pairs [][]string
	for _, d := range ds {
		flags := cmp.Or(d.Grant, d.Wider)
		if d.Harmless != "" || d.Wider == outside {
			continue
		}
		if gs, ok := sandbox.ParseGrants(flags); ok {
			grants = append(grants, gs...)
		} else if wide, ok := FlagPairs(flags); ok {
			wider = append(wider, wide...)
		}
	}
	for _, g := range grants {
		if !slices.ContainsFunc(grants, func(o sandbox.Grant) bool { return o != g && includes(o, g) }) {
			pairs = append(pairs, GrantWords(g))
		}
	}
	var least [][]string
	for _, p := range append(pairs, wider...) {
		if !slices.ContainsFunc(least, func(q []string) bool { return slices.Equal(p, q) }) {
			least = append(least, p)
		}
	}
	return least
}

// includes reports whether a path grant opens what another one does. A directory's grant
// does not open the protected names in it.
func includes(o, g sandbox.Grant) bool {
	if o.Path == "" || g.Path == "" || o.Level < g.Level || grants.HeldByItself(g.Path) {
		return false
	}
	for at := g.Path; at != o.Path; at = path.Dir(at) {
		if at == "/" || at == "." || slices.Contains(sandbox.ProtectedNames(), path.Base(at)) &&
			g.Level == sandbox.LevelWrite {
			return false
		}
	}
	return true
}
