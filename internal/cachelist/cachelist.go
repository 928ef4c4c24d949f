// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cachelist lists and clears the private layers over toolchain caches in all state
// directories of a user, for people and as JSON.
package cachelist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/notes"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/state"
)

// A Listing has the layers of every workspace. The member names of its JSON form stay.
type Listing struct {
	Type   string         `json:"type"` // always "caches"
	Caches []caches.Entry `json:"caches"`
}

// List returns the layers, sorted by workspace and cache.
func List() (Listing, error) {
	list := Listing{Type: "caches", Caches: []caches.Entry{}}
	for _, dir := range state.Existing() {
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
func (l Listing) String() string {
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
		fmt.Fprintf(&b, "%10s %8d files  %-*s  %s%s\n", notes.Bytes(float64(c.Bytes)), c.Files, width, printable.Word(c.Cache), printable.Word(c.Workspace), used)
	}
	return b.String()
}

// Cleared are the workspaces whose layers were cleared, and those whose layers a run uses.
type Cleared struct {
	Removed, InUse []string
}

// Clear clears the layers of a workspace, or all for "".
func Clear(workspace string) (Cleared, error) {
	var all Cleared
	for _, dir := range state.Existing() {
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
func (c Cleared) String() string {
	var b strings.Builder
	for _, w := range c.Removed {
		b.WriteString("cleared  " + printable.Word(w) + "\n")
	}
	for _, w := range c.InUse {
		b.WriteString("in use   " + printable.Word(w) + "\n")
	}
	if b.Len() == 0 {
		return "Nothing to clear.\n"
	}
	return b.String()
}
