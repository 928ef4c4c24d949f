// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestFits: layers serve runs of their class in their workspace, and no others.
func TestFits(t *testing.T) {
	r := Request{
		Plan: &plan.Request{Rules: []plan.Rule{{Spot: plan.Spot{Path: "/w", Kind: plan.KindDirectory},
			Level: sandbox.LevelWrite}}},
		Dir: "/w/in", Policy: &sandbox.Resolved{Root: sandbox.LevelRead},
	}
	class := classOf(&r, "/w")
	other := class
	other.writes = !class.writes
	for _, test := range []struct {
		name   string
		layers *Layers
		want   bool
	}{
		{"of the workspace", &Layers{slot: &slot{workspace: "/w", class: class}}, true},
		{"of another workspace", &Layers{slot: &slot{workspace: "/w2", class: class}}, false},
		{"of another class", &Layers{slot: &slot{workspace: "/w", class: other}}, false},
		{"none", nil, false},
	} {
		if got := r.Fits(test.layers); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// TestCacheLink: the directory of a cache must not lead through a link that a command can change.
func TestCacheLink(t *testing.T) {
	root := t.TempDir()
	must(t, os.Mkdir(root+"/cache", 0o700))
	must(t, os.Symlink("cache", root+"/link"))
	p := preparation{
		store: new(Store), slot: new(slot), env: []string{"HOME=/none", "npm_config_cache=" + root + "/link"},
		pr: plan.Request{Rules: []plan.Rule{{Spot: plan.Spot{Path: root, Kind: plan.KindDirectory},
			Level: sandbox.LevelWrite}}},
	}
	var unsupported *sandbox.UnsupportedError
	if err := p.add(find(t, "npm")); !errors.As(err, &unsupported) ||
		!strings.Contains(unsupported.Have, root+"/link") {
		t.Errorf("%v", err)
	}
}
