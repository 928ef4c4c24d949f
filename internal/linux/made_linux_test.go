// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestMadeCaches: caches whose path tools record, or that no variable names, have the same path inside as
// outside where the host has none of them yet. What is written there stays in the layer.
func TestMadeCaches(t *testing.T) {
	testenv.RunAsOrdinary(t)
	none := func(*testing.T, *cached) {}
	has := func(dir string) func(*testing.T, *cached) {
		return func(t *testing.T, c *cached) { must(t, os.MkdirAll(c.home+dir, 0o755)) }
	}
	for _, c := range []struct {
		name, marker, dir string // dir is below the home
		before            func(t *testing.T, c *cached)
		env               string // a variable that must not be set
	}{
		{"checksums, without a GOPATH", "go.mod", "go/pkg/sumdb", none, "GOPATH"},
		{"checksums, beside modules", "go.mod", "go/pkg/sumdb",
			has("/go/pkg/mod/cache"), "GOPATH"},
		{"checksums, as the host has them", "go.mod", "go/pkg/sumdb",
			has("/go/pkg/sumdb/x"), "GOPATH"},
		{"repositories of modules", "go.mod", "go/pkg/mod/cache/vcs", none, "GOMODCACHE"},
		{"store of pnpm", "pnpm-lock.yaml", ".local/share/pnpm/store", none, "npm_config_store_dir"},
		{"lists of pnpm", "pnpm-lock.yaml", ".cache/pnpm", none, "npm_config_cache_dir"},
		{"cache of yarn", "yarn.lock", ".yarn/berry", none, ""},
		{"registry of cargo", "Cargo.toml", ".cargo/registry", none, "CARGO_HOME"},
		{"settings of cargo", "Cargo.toml", ".cargo/git", func(t *testing.T, c *cached) {
			must(t, os.Mkdir(c.home+"/.cargo", 0o755))
			write(t, c.home+"/.cargo/config.toml", "[net]\n")
		}, "CARGO_HOME"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newCached(t)
			c.before(t, a)
			write(t, a.ws+"/"+c.marker, "")
			for range 2 { // the second finds the directory, and what the first wrote
				words := strings.NewReplacer("NAME", cmp.Or(c.env, "none"), "DIR", "$HOME/"+c.dir+"/d")
				got := a.sh(t, &job{}, words.Replace(
					`printf %s "${NAME}"; mkdir -p "DIR" && cd "DIR" && echo x >>new && head -n 1 new`))
				if got != "x\n" {
					t.Errorf("printed %q", got)
				}
			}
			if _, err := os.Lstat(filepath.Join(a.home, c.dir, "d/new")); err == nil {
				t.Error("it was written outside")
			}
		})
	}
}

// TestMadeOnlyWhereNeeded: nothing is made in the home for a run that may not write, that only plans or
// that has no layers, or where the policy has a rule for the place.
func TestMadeOnlyWhereNeeded(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, c := range []struct {
		name   string
		policy func(c *cached) sandbox.Policy
		change func(r *caches.Request)
	}{
		{name: "read-only", policy: func(c *cached) sandbox.Policy { return bind(sandbox.ReadOnly(), c.ws) }},
		{name: "only planned", change: func(r *caches.Request) { r.Dry = true }},
		{name: "no overlays", change: func(r *caches.Request) { r.Overlays = false }},
		{name: "no layers", change: func(r *caches.Request) { r.Disabled = true }},
		{name: "denied", policy: func(c *cached) sandbox.Policy {
			return c.policy().WithEntries(shut(c.home))
		}},
		{name: "a rule below", policy: func(c *cached) sandbox.Policy {
			must(t, os.MkdirAll(c.home+"/go/pkg", 0o755))
			return c.policy().WithEntries(sandbox.PathEntry(c.home+"/go", sandbox.LevelWrite))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newCached(t)
			write(t, a.ws+"/go.mod", "")
			p := a.policy()
			if c.policy != nil {
				p = c.policy(a)
			}
			unchanged(t, a.home)
			if c.change == nil {
				a.sh(t, &job{policy: &p}, "true")
				return
			}
			res, err := p.Resolve()
			must(t, err)
			r := caches.Request{Plan: &plan.Request{Root: sandbox.LevelRead, Env: a.env()}, Dir: a.ws,
				State: a.base + "/state", Policy: &res, Overlays: true}
			must(t, os.MkdirAll(r.State+"/caches", 0o700))
			c.change(&r)
			layers, err := new(caches.Store).Prepare(r)
			must(t, err)
			layers.Release()
		})
	}
}

// TestEmptyCacheIsRedirected: an empty directory of the host's, as one that was made, is no cache to read
// where it can have no overlay.
func TestEmptyCacheIsRedirected(t *testing.T) {
	a := newCached(t)
	write(t, a.ws+"/go.mod", "")
	must(t, os.MkdirAll(a.home+"/go/pkg/mod", 0o755))
	res, err := a.policy().Resolve()
	must(t, err)
	r := caches.Request{Plan: &plan.Request{Root: sandbox.LevelRead, Env: a.env()}, Dir: a.ws,
		State: a.base + "/state", Policy: &res}
	must(t, os.MkdirAll(r.State+"/caches", 0o700))
	for _, want := range []bool{true, false} {
		layers, err := new(caches.Store).Prepare(r)
		must(t, err)
		if got := strings.Contains(strings.Join(layers.Env, "\n"), "GOMODCACHE="); got != want {
			t.Errorf("redirected %v, want %v", got, want)
		}
		layers.Release()
		write(t, a.home+"/go/pkg/mod/warm", "")
	}
}
