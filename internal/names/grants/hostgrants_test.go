// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"slices"
	"strings"
	"testing"
)

// TestTable: each host is in one grant only, so that With has one answer.
func TestTable(t *testing.T) {
	owner := map[string]string{}
	var names []string
	for _, g := range HostGrants() {
		names = append(names, strings.TrimPrefix(g.Name, HostPrefix))
		t.Run(g.Name, func(t *testing.T) {
			if !strings.HasPrefix(g.Name, HostPrefix) || g.Opens == "" || g.Keeps == "" || len(g.Hosts) == 0 {
				t.Errorf("%+v", g)
			}
			for _, h := range g.Hosts {
				if owner[h] != "" {
					t.Errorf("%s is in %s, too", h, owner[h])
				}
				owner[h] = g.Name
				if with, ok := GrantOfHost(h); !ok || with.Name != g.Name {
					t.Errorf("%s: %+v, %v", h, with, ok)
				}
			}
			if !slices.Equal(Hosts(g.Name), g.Hosts) {
				t.Errorf("%q", Hosts(g.Name))
			}
		})
	}
	if want := []string{"npm", "pypi", "go", "crates", "maven", "debian", "github"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for _, name := range []string{"", "net:", "npm", "net:nonesuch", "NET:npm"} {
		if Hosts(name) != nil {
			t.Errorf("%q has hosts", name)
		}
	}
	for _, host := range []string{"", "registry.npmjs.org", "registry.npmjs.org:80", "a.github.com:443"} {
		if g, ok := GrantOfHost(host); ok || g.Name != "" {
			t.Errorf("%s: %+v", host, g)
		}
	}
}

// TestLoopback: such a grant is for one port, in the spelling that a number usually has.
func TestLoopback(t *testing.T) {
	for name, want := range map[string][]string{
		"loopback:3000":  {"localhost:3000", "127.0.0.1:3000", "[::1]:3000"},
		"loopback:65535": {"localhost:65535", "127.0.0.1:65535", "[::1]:65535"},
		"loopback:0":     nil, "loopback:65536": nil, "loopback:080": nil, "loopback:+80": nil, "loopback:": nil,
		"loopback:PORT": nil, "loopback:1-2": nil, "loopback:*": nil, "LOOPBACK:80": nil, "loopback": nil, " loopback:80": nil,
	} {
		if got := Hosts(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for host, want := range map[string]string{
		"localhost:3000": "loopback:3000", "127.0.0.1:80": "loopback:80", "[::1]:80": "loopback:80",
		"127.0.0.2:80": "", "localhost": "", "localhost:": "", "a.localhost:80": "", ":80": "", "localhost:080": "",
	} {
		if g, ok := GrantOfHost(host); g.Name != want || ok != (want != "") {
			t.Errorf("%s: %+v, %v", host, g, ok)
		}
	}
}
