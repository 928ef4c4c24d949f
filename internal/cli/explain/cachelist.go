// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A CacheListing has the layers of every workspace. The member names of its JSON form stay.
type CacheListing struct {
	Type   string         `json:"type"` // always "caches"
	Caches []caches.Entry `json:"caches"`
}

// ListCaches returns the layers, sorted by workspace and cache.
func ListCaches() (CacheListing, error) {
	list := CacheListing{Type: "caches", Caches: []caches.Entry{}}
	for _, dir := range dirs.Existing() {
		entries, err := caches.List(dir)
		if err != nil {
			return list, err
		}
		list.Caches = append(list.Caches, entries...)
	}
	slices.SortStableFunc(list.Caches, func(a, b caches.Entry) int {
		return strings.Compare(a.Workspace+"\x00"+a.Cache, b.Workspace+"\x00"+b.Cache)
	})
	return list, nil
}

// String returns the list for people.
func (l CacheListing) String() string {
	if len(l.Caches) == 0 {
		return "No program has written to a toolchain cache.\n"
	}
	width := 0
	for _, c := range l.Caches {
		width = max(width, len(text.Word(c.Cache)))
	}
	var b strings.Builder
	for _, c := range l.Caches {
		used := ""
		if c.InUse {
			used = "  (in use)"
		}
		fmt.Fprintf(&b, "%10s %8d files  %-*s  %s%s\n", Bytes(float64(c.Bytes)), c.Files, width,
			text.Word(c.Cache), text.Word(c.Workspace), used)
	}
	return b.String()
}

// ClearedCaches are the workspaces whose layers were cleared, and those whose layers a run uses.
type ClearedCaches struct {
	Removed, InUse []string
}

// ClearCaches clears the layers of a workspace, or all for "".
func ClearCaches(workspace string) (ClearedCaches, error) {
	var all ClearedCaches
	for _, dir := range dirs.Existing() {
		done, err := caches.Clear(dir, workspace)
		if err != nil {
			return all, err
		}
		all.Removed = append(all.Removed, done.Removed...)
		all.InUse = append(all.InUse, done.InUse...)
	}
	return all, nil
}

// String returns one line for each workspace.
func (c ClearedCaches) String() string {
	var b strings.Builder
	for _, w := range c.Removed {
		b.WriteString("cleared  " + text.Word(w) + "\n")
	}
	for _, w := range c.InUse {
		b.WriteString("in use   " + text.Word(w) + "\n")
	}
	if b.Len() == 0 {
		return "Nothing to clear.\n"
	}
	return b.String()
}
