// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"slices"
	"strings"
	"testing"
)

// names lists the caches of toolchains.
func names(ts []Toolchain) string {
	var out []string
	for _, t := range ts {
		for i := range t.Caches {
			out = append(out, t.Caches[i].Name)
		}
	}
	return strings.Join(out, " ")
}

func TestGranted(t *testing.T) {
	for _, test := range []struct{ name, grant, want string }{
		{"a toolchain", "cache:go", "go-build go-mod go-sumdb"},
		{"a tool and a toolchain", "cache:npm", "npm"},
		{"a whole toolchain of two tools", "cache:python", "pip uv"},
		{"one tool", "cache:pip", "pip"},
		{"the other tool", "cache:uv", "uv"},
		{"nothing", "cache:", ""},
		{"a cache's own name", "cache:go-build", ""},
		{"another grant", "git", ""},
		{"no prefix", "npm", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := Granted(test.grant)
			if names([]Toolchain{got}) != test.want || ok != (test.want != "") {
				t.Errorf("%q %v, want %q", names([]Toolchain{got}), ok, test.want)
			}
			if slices.Contains(Grants(), test.grant) != ok {
				t.Errorf("it is not among %q", Grants())
			}
		})
	}
}

func TestJoin(t *testing.T) {
	of := func(grants ...string) (ts []Toolchain) {
		for _, g := range grants {
			tool, ok := Granted(g)
			if !ok {
				t.Fatalf("no %s", g)
			}
			ts = append(ts, tool)
		}
		return ts
	}
	for _, test := range []struct {
		name           string
		found, granted []Toolchain
		want           string
	}{
		{"nothing", nil, nil, ""},
		{"found", of("cache:go"), nil, "go-build go-mod go-sumdb"},
		{"granted", nil, of("cache:npm"), "npm"},
		{"both the same", of("cache:go"), of("cache:go"), "go-build go-mod go-sumdb"},
		{"a part and the whole", of("cache:pip"), of("cache:python", "cache:npm"), "pip uv npm"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if len(test.granted) == 1 && len(test.found) == 1 &&
				Covers(test.found, GrantPrefix+test.granted[0].Name) != (test.name == "both the same") {
				t.Error("Covers says otherwise")
			}
			if got := names(Join(test.found, test.granted)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestGrantFor(t *testing.T) {
	real := func(name string) string { return strings.Replace(name, "/h/", "/real/", 1) }
	for _, test := range []struct{ name, path, env, want string }{
		{"npm", "/h/.npm/_cacache/x", "HOME=/h", "cache:npm"},
		{"the directory itself", "/h/.npm", "HOME=/h", "cache:npm"},
		{"beside it", "/h/.npmrc", "HOME=/h", ""},
		{"behind a link", "/real/.npm/x", "HOME=/h", "cache:npm"},
		{"go", "/h/.cache/go-build/00/x", "HOME=/h", "cache:go"},
		{"moved", "/var/go/x", "GOCACHE=/var/go", "cache:go"},
		{"the modules", "/h/go/pkg/mod/x", "HOME=/h", "cache:go"},
		{"pip", "/h/.cache/pip/x", "HOME=/h", "cache:pip"},
		{"cargo", "/h/.cargo/registry/x", "HOME=/h", "cache:cargo"},
		{"programs of cargo", "/h/.cargo/bin/x", "HOME=/h", ""},
		{"a cache that is everything", "/x", "GOCACHE=/", ""},
		{"no home", "/h/.npm/x", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, dir := GrantFor(test.path, []string{test.env}, real)
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if got != "" && !inside(test.path, dir) {
				t.Errorf("the directory is %q", dir)
			}
			if got != "" && !slices.Contains(Grants(), got) {
				t.Error("there is no such grant")
			}
		})
	}
}
