// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/state"
)

const cachesHelp = `List or clear what programs wrote to toolchain caches.

  sallyport caches [--json]
  sallyport caches clear [--all | WORKSPACE]

A program sees the toolchain caches of this machine, and its writes go to a
private layer of the workspace. This command clears only these layers. A layer
that a run uses is not cleared; the exit code is 1 then.
`

func cachesFlags(o *options) []flag {
	return []flag{{long: "all", set: on(&o.all), help: "clear every workspace (default the current one)"}, o.jsonFlag()}
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

func cachesCommand(_ context.Context, env *Env, o *options, words []string) error {
	switch {
	case len(words) == 0 && o.all:
		return failure("--all needs clear: sallyport caches clear --all")
	case len(words) == 0:
		return listCaches(env, o.json)
	case words[0] != "clear":
		return failure("unknown argument %s%s", quote(words[0]), didYouMean(words[0], []string{"clear"}, "see sallyport help caches"))
	case o.json:
		return failure("--json is for the list: sallyport caches --json")
	case o.all && len(words) > 1:
		return failure("--all and a workspace cannot be combined; use one of them")
	}
	workspace := ""
	if !o.all {
		workspace = filepath.Join(words[1:]...)
		if !filepath.IsAbs(workspace) {
			if env.Dir == "" {
				return failure("the current directory no longer exists; name the workspace by its absolute path")
			}
			workspace = filepath.Join(env.Dir, workspace)
		}
		workspace = realPath(filepath.Clean(workspace)) // one that is gone has the name that it had
	}
	return clearCaches(env, workspace)
}

func listCaches(env *Env, asJSON bool) error {
	list := cacheList{Type: "caches", Caches: []cacheLine{}}
	for _, dir := range state.Existing() {
		entries, err := caches.List(dir)
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
	return env.answer(list, asJSON, true)
}

// String returns the list for people.
func (l cacheList) String() string {
	if len(l.Caches) == 0 {
		return "No program has written to a toolchain cache.\n"
	}
	width := 0
	for _, c := range l.Caches {
		width = max(width, len(printable.Word(c.Cache)))
	}
	var b strings.Builder
	for _, c := range l.Caches {
		used := ""
		if c.InUse {
			used = "  (in use)"
		}
		fmt.Fprintf(&b, "%10s %8d files  %-*s  %s%s\n", bytesText(float64(c.Bytes)), c.Files, width, printable.Word(c.Cache), printable.Word(c.Workspace), used)
	}
	return b.String()
}

// clearCaches clears the layers of a workspace, or all for "".
func clearCaches(env *Env, workspace string) error {
	var b strings.Builder
	inUse := false
	for _, dir := range state.Existing() {
		done, err := caches.Clear(dir, workspace)
		if err != nil {
			return err
		}
		for _, w := range done.Removed {
			b.WriteString("cleared  " + printable.Word(w) + "\n")
		}
		for _, w := range done.InUse {
			b.WriteString("in use   " + printable.Word(w) + "\n")
			inUse = true
		}
	}
	if b.Len() == 0 {
		b.WriteString("Nothing to clear.\n")
	}
	if err := env.print(b.String()); err != nil || !inUse {
		return err
	}
	return exitCode(codeNo)
}
