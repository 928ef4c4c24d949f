// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/state"
)

func cachesUsage() string {
	return `Say what commands have written to the caches of toolchains, or empty that.

  sallyport caches [--json]
  sallyport caches clear [--all | WORKSPACE]

A command sees the caches of its workspace's toolchains as they are on this
machine; what it writes there is kept in a private layer of the workspace. The
machine's own caches are never changed, here neither.

      --json   print one JSON object
      --all    clear every workspace; without it the one named, or this one

What a run uses at the moment stays: then the exit code is 1.
`
}

// A cacheList is the answer of caches. The member names of its JSON form stay.
type cacheList struct {
	Type   string      `json:"type"` // always "caches"
	Caches []cacheLine `json:"caches"`
}

// A cacheLine is what one workspace has of one cache.
type cacheLine struct {
	Workspace string `json:"workspace"`
	Cache     string `json:"cache"`
	Bytes     int64  `json:"bytes"`
	Files     int    `json:"files"`
	InUse     bool   `json:"in_use"`
}

func cachesVerb(_ context.Context, env *Env, args []string) error {
	var asJSON, all, help bool
	flags := []flag{
		{long: "json", set: on(&asJSON)},
		{long: "all", set: on(&all)},
		{long: "help", short: 'h', set: on(&help)},
	}
	words, err := parse(flags, args)
	clearing := len(words) > 0 && words[0] == "clear"
	if clearing && err == nil {
		words, err = parse(flags, words[1:])
	}
	switch {
	case err != nil:
		return err
	case help:
		return env.put([]byte(cachesUsage()))
	case clearing:
		if asJSON {
			return usage("--json belongs to the list: sallyport caches --json")
		}
		return clearCaches(env, words, all)
	case len(words) > 0:
		return usage("caches has no %s%s", quote(words[0]), hint(words[0], []string{"clear"}, "sallyport help caches explains it"))
	case all:
		return usage("--all belongs to clear: sallyport caches clear --all")
	}
	return listCaches(env, asJSON)
}

func listCaches(env *Env, asJSON bool) error {
	list := cacheList{Type: "caches", Caches: []cacheLine{}}
	for _, state := range state.Existing() {
		entries, err := caches.List(state)
		if err != nil {
			return err
		}
		for _, e := range entries {
			list.Caches = append(list.Caches, cacheLine(e))
		}
	}
	slices.SortStableFunc(list.Caches, func(a, b cacheLine) int {
		return strings.Compare(a.Workspace+"\x00"+a.Cache, b.Workspace+"\x00"+b.Cache)
	})
	if !asJSON {
		return env.put([]byte(list.String()))
	}
	out, err := encode(list)
	if err != nil {
		return err
	}
	return env.put(out)
}

// String returns the list for people.
func (l cacheList) String() string {
	if len(l.Caches) == 0 {
		return "No command has written to a toolchain's cache.\n"
	}
	width := 0
	for _, c := range l.Caches {
		width = max(width, len(c.Cache))
	}
	var b strings.Builder
	for _, c := range l.Caches {
		used := ""
		if c.InUse {
			used = "  (in use)"
		}
		fmt.Fprintf(&b, "%10s %8d files  %-*s  %s%s\n", inUnits(c.Bytes), c.Files, width, c.Cache, shown(c.Workspace), used)
	}
	return b.String()
}

// shown returns a path as it is, or quoted where it would not stay on its line.
func shown(path string) string {
	if path == "" || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// inUnits writes a number of bytes for people.
func inUnits(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// clearCaches empties what the words ask for.
func clearCaches(env *Env, words []string, all bool) error {
	workspace := ""
	switch {
	case all && len(words) > 0:
		return usage("--all and %s do not go together", quote(words[0]))
	case len(words) > 1:
		return usage("caches clear takes one workspace, or --all")
	case !all:
		name := env.Dir
		if len(words) == 1 {
			name = words[0]
		}
		if !filepath.IsAbs(name) {
			if env.Dir == "" {
				return sentence("the current directory is not there any more; name the workspace by its absolute path")
			}
			name = filepath.Join(env.Dir, name)
		}
		workspace = filepath.Clean(name)
		if real, err := filepath.EvalSymlinks(workspace); err == nil {
			workspace = real // one that is gone is known by the name that it had
		}
	}
	var done caches.Cleared
	for _, state := range state.Existing() {
		c, err := caches.Clear(state, workspace)
		if err != nil {
			return err
		}
		done.Removed = append(done.Removed, c.Removed...)
		done.InUse = append(done.InUse, c.InUse...)
	}
	var b strings.Builder
	for _, w := range done.Removed {
		b.WriteString("cleared  " + shown(w) + "\n")
	}
	for _, w := range done.InUse {
		b.WriteString("in use   " + shown(w) + "\n")
	}
	if b.Len() == 0 {
		b.WriteString("Nothing to clear.\n")
	}
	if err := env.put([]byte(b.String())); err != nil {
		return err
	}
	if len(done.InUse) > 0 {
		return exitCode(codeNo)
	}
	return nil
}
