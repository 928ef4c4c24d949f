// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// settleHidden lists what is hidden, and leaves out copies in directories that are denied.
func (g *inspection) settleHidden() {
	for real, r := range g.rules {
		grant, ok := strings.CutPrefix(r.Why, whyCredentials)
		if !ok {
			delete(g.copies, real) // another rule has taken its place
			continue
		}
		if above, ok := g.nearest(filepath.Dir(real)); ok && above.Level == sandbox.LevelDeny {
			delete(g.copies, real)
		}
		if _, ok := g.copies[real]; !ok && !slices.Contains(g.hidden, grant) {
			g.hidden = append(g.hidden, grant)
		}
	}
	slices.Sort(g.hidden)
}

// Copies returns what to show in the place of settings with secrets, by the paths of rules that deny
// these. Call it before [Protection.Started].
func (p *Protection) Copies() map[string]Copy {
	if p == nil {
		return nil
	}
	return p.found.copies
}

// Replaced returns the paths of these settings, as they are written, sorted.
func (p *Protection) Replaced() []string {
	if p == nil {
		return nil
	}
	var out []string
	for _, c := range p.found.copies {
		out = append(out, c.Path)
	}
	slices.Sort(out)
	return out
}
