// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostgrants

import (
	"slices"
	"strings"
	"testing"
)

// TestTable: each host is in one grant only, so that With has one answer.
func TestTable(t *testing.T) {
	owner := map[string]string{}
	var names []string
	for _, g := range Grants() {
		names = append(names, strings.TrimPrefix(g.Name, Prefix))
		t.Run(g.Name, func(t *testing.T) {
			if !strings.HasPrefix(g.Name, Prefix) || g.Opens == "" || g.Keeps == "" || len(g.Hosts) == 0 {
				t.Errorf("%+v", g)
			}
			for _, h := range g.Hosts {
				if owner[h] != "" {
					t.Errorf("%s is in %s, too", h, owner[h])
				}
				owner[h] = g.Name
				if with, ok := With(h); !ok || with.Name != g.Name {
					t.Errorf("%s: %+v, %v", h, with, ok)
				}
			}
			if !slices.Equal(Hosts(g.Name), g.Hosts) {
				t.Errorf("%q", Hosts(g.Name))
			}
		})
	}
	if want := []string{"npm", "pypi", "go", "crates", "debian", "github"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for _, name := range []string{"", "net:", "npm", "net:nonesuch", "NET:npm"} {
		if Hosts(name) != nil {
			t.Errorf("%q has hosts", name)
		}
	}
	for _, host := range []string{"", "registry.npmjs.org", "registry.npmjs.org:80", "a.github.com:443"} {
		if g, ok := With(host); ok || g.Name != "" {
			t.Errorf("%s: %+v", host, g)
		}
	}
}
