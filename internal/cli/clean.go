// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/state"
)

// A cleaning is the answer of doctor --clean. The member names of its JSON form
// stay.
type cleaning struct {
	Type   string         `json:"type"` // always "clean"
	OK     bool           `json:"ok"`   // nothing failed
	States []state.Report `json:"states"`
}

// cleanState removes what killed runs left, and says what.
func cleanState(env *Env, asJSON bool) error {
	c := cleaned(state.Clean())
	out := []byte(c.String())
	if asJSON {
		var err error
		if out, err = encode(c); err != nil {
			return err
		}
	}
	if err := env.put(out); err != nil {
		return err
	}
	if !c.OK {
		return exitCode(codeNo)
	}
	return nil
}

// cleaned draws the conclusion. Lists that are empty are so in JSON, too.
func cleaned(states []state.Report) cleaning {
	c := cleaning{Type: "clean", OK: true, States: []state.Report{}}
	for _, r := range states {
		c.OK = c.OK && len(r.Failed) == 0
		for _, list := range []*[]string{&r.Placeholders, &r.TmpDirs, &r.Discarded} {
			*list = append([]string{}, *list...)
		}
		for _, list := range []*[]guard.Left{&r.Replaced, &r.Unknown, &r.Failed} {
			*list = append([]guard.Left{}, *list...)
		}
		r.Held = append([]guard.Held{}, r.Held...)
		c.States = append(c.States, r)
	}
	return c
}

// String returns the report for people.
func (c cleaning) String() string {
	var b strings.Builder
	line := func(word, path, about string) { fmt.Fprintf(&b, "%-10s %s  (%s)\n", word, shown(path), about) }
	for _, r := range c.States {
		for _, p := range r.Placeholders {
			line("removed", p, "placeholder for a protected name")
		}
		for _, p := range r.TmpDirs {
			line("removed", p, "the private /tmp of a run that has ended")
		}
		for _, p := range r.Discarded {
			line("removed", p, "too old or too large for quarantine")
		}
		for _, h := range r.Held {
			what := fmt.Sprintf("%d processes need it", h.Holders)
			if h.Holders == 1 {
				what = "1 process needs it"
			}
			line("in use", h.Path, what)
		}
		for _, lists := range []struct {
			word string
			list []guard.Left
		}{{"replaced", r.Replaced}, {"unknown", r.Unknown}, {"FAILED", r.Failed}} {
			for _, l := range lists.list {
				line(lists.word, l.Path, l.Why)
			}
		}
	}
	if b.Len() == 0 {
		b.WriteString("Nothing to clean up.\n")
	}
	for _, r := range c.States {
		if r.Quarantined > 0 {
			line("quarantine", filepath.Join(r.State, "quarantine"), fmt.Sprintf("holds %d, %s; removed after 30 days", r.Quarantined, inUnits(r.QuarantineBytes)))
		}
	}
	return b.String()
}
