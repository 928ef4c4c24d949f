// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Cleaning is the answer of doctor --clean. The member names of its JSON form
// stay.
type Cleaning struct {
	Type   string        `json:"type"` // always "clean"
	OK     bool          `json:"ok"`   // nothing failed
	States []dirs.Report `json:"states"`
}

// Cleaned makes the answer of what [dirs.Clean] has returned. Lists that are empty are so in
// JSON, too.
func Cleaned(states []dirs.Report) Cleaning {
	c := Cleaning{Type: "clean", OK: true, States: []dirs.Report{}}
	for _, r := range states {
		c.OK = c.OK && len(r.Failed) == 0
		for _, list := range []*[]string{&r.TmpDirs, &r.Discarded} {
			*list = append([]string{}, *list...)
		}
		for _, list := range []*[]guard.Left{&r.Planted, &r.Unknown, &r.Failed} {
			*list = append([]guard.Left{}, *list...)
		}
		r.Held = append([]guard.Held{}, r.Held...)
		c.States = append(c.States, r)
	}
	return c
}

// String returns the answer for people.
func (c Cleaning) String() string {
	var b strings.Builder
	line := func(word, path, about string) {
		fmt.Fprintf(&b, "%-10s %s  (%s)\n", word, text.Word(path), text.Line(about))
	}
	for _, r := range c.States {
		for _, removed := range []struct {
			paths []string
			about string
		}{
			{r.TmpDirs, "private /tmp of a run that has ended"},
			{r.Discarded, "quarantined, and old or over the limit"},
		} {
			for _, p := range removed.paths {
				line("removed", p, removed.about)
			}
		}
		for _, h := range r.Held {
			line("in use", h.Path, "by "+Plural(h.Holders, "process", "processes"))
		}
		for _, left := range []struct {
			word string
			list []guard.Left
		}{{"quarantined", r.Planted}, {"unknown", r.Unknown}, {"FAILED", r.Failed}} {
			for _, l := range left.list {
				line(left.word, l.Path, l.Why)
			}
		}
	}
	if b.Len() == 0 {
		b.WriteString("Nothing to clean up.\n")
	}
	for _, r := range c.States {
		if r.Quarantined > 0 {
			line("quarantine", filepath.Join(r.State, "quarantine"),
				fmt.Sprintf("%s, %s, removed after 30 days",
					Plural(r.Quarantined, "entry", "entries"),
					Bytes(float64(r.QuarantineBytes))))
		}
	}
	return b.String()
}
