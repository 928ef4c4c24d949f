// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// find returns a cache of the table.
func find(t testing.TB, name string) *Cache {
	t.Helper()
	for _, tool := range table() {
		for i := range tool.Caches {
			if tool.Caches[i].Name == name {
				return &tool.Caches[i]
			}
		}
	}
	t.Fatalf("there is no cache %q", name)
	return nil
}

func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, tool := range table() {
		t.Run(tool.Name, func(t *testing.T) {
			if len(tool.Markers) == 0 && tool.Name != "ccache" || len(tool.Caches) == 0 {
				t.Error("no markers or no caches")
			}
			for _, c := range tool.Caches {
				if names[c.Name] || strings.ContainsAny(c.Name, "/ ") || c.Name == "" {
					t.Errorf("%q cannot be the name of one directory", c.Name)
				}
				names[c.Name] = true
				if got := c.Dir([]string{"HOME=/h"}); !strings.HasPrefix(got, "/h/") {
					t.Errorf("%s: with only a HOME it is %q", c.Name, got)
				}
				if c.Redirect.Name == "" {
					continue
				}
				// The tool must read the variable that is set.
				env, ok := c.RedirectTo([]string{"HOME=/h"}, "/private")
				if got := c.Dir(env); !ok || !strings.HasPrefix(got, "/private") {
					t.Errorf("%s: redirected by %q it is %q", c.Name, env, got)
				}
			}
		})
	}
}

func TestDir(t *testing.T) {
	cases := []struct {
		name, cache string
		env         []string
		want        string
	}{
		{"default", "go-build", []string{"HOME=/h"}, "/h/.cache/go-build"},
		{"XDG", "go-build", []string{"HOME=/h", "XDG_CACHE_HOME=/x"}, "/x/go-build"},
		{"a relative XDG directory is ignored", "pip", []string{"HOME=/h", "XDG_CACHE_HOME=x"}, "/h/.cache/pip"},
		{"moved", "go-build", []string{"HOME=/h", "GOCACHE=/c/"}, "/c"},
		{"switched off", "go-build", []string{"HOME=/h", "GOCACHE=off"}, "/h/.cache/go-build"},
		{"the last of two counts", "go-build", []string{"GOCACHE=/a", "GOCACHE=/b"}, "/b"},
		{"a longer name is another one", "go-build", []string{"GOCACHEX=/a", "HOME=/h"}, "/h/.cache/go-build"},
		{"first of GOPATH", "go-mod", []string{"GOPATH=/p:/q"}, "/p/pkg/mod"},
		{"GOMODCACHE before GOPATH", "go-mod", []string{"GOPATH=/p", "GOMODCACHE=/m"}, "/m"},
		{"an empty variable is none", "go-mod", []string{"GOPATH=", "GOMODCACHE=", "HOME=/h"}, "/h/go/pkg/mod"},
		{"npm in capitals", "npm", []string{"NPM_CONFIG_CACHE=/n", "HOME=/h"}, "/n"},
		{"cargo", "cargo-registry", []string{"CARGO_HOME=/c", "HOME=/h"}, "/c/registry"},
		{"an option among others", "maven", []string{"MAVEN_OPTS=-Xmx1g -Dmaven.repo.local=/r -ea", "HOME=/h"}, "/r"},
		{"no such option", "maven", []string{"MAVEN_OPTS=-Xmx1g", "HOME=/h"}, "/h/.m2/repository"},
		{"no variable", "npm", []string{"PATH=/bin"}, ""},
		{"a relative home", "npm", []string{"HOME=h"}, ""},
		{"dots", "npm", []string{"HOME=/h/../k"}, "/k/.npm"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := find(t, c.cache).Dir(c.env); got != c.want {
				t.Errorf("%q is %q, want %q", c.env, got, c.want)
			}
		})
	}
}

func TestRedirectTo(t *testing.T) {
	cases := []struct {
		name, cache string
		env         []string
		dir         string
		want        []string // nil: cannot be said
	}{
		{"set", "go-build", []string{"A=1"}, "/p", []string{"A=1", "GOCACHE=/p"}},
		{"replaced wherever it stands", "go-build", []string{"GOCACHE=/a", "A=1", "GOCACHE=/b"}, "/p", []string{"A=1", "GOCACHE=/p"}},
		{"npm's in any case", "npm", []string{"NPM_CONFIG_CACHE=/a", "npm_config_Cache=/b"}, "/p", []string{"npm_config_cache=/p"}},
		{"a directory with a space", "pip", nil, "/p q", []string{"PIP_CACHE_DIR=/p q"}},
		{"added to words", "maven", []string{"MAVEN_OPTS=-Xmx1g"}, "/p", []string{"MAVEN_OPTS=-Xmx1g -Dmaven.repo.local=/p"}},
		{"words cannot hold a space", "maven", []string{"A=1"}, "/p q", nil},
		{"no variable", "cargo-git", []string{"A=1"}, "/p", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := slices.Clone(c.env)
			got, ok := find(t, c.cache).RedirectTo(c.env, c.dir)
			want := c.want
			if want == nil {
				want = before
			}
			if diff := cmp.Diff(want, got); diff != "" || ok != (c.want != nil) {
				t.Errorf("%v %s", ok, diff)
			}
			if diff := cmp.Diff(before, c.env); diff != "" {
				t.Errorf("the caller's list was changed: %s", diff)
			}
		})
	}
}

// FuzzRedirectTo: a redirected cache is in the directory, and the
// rest of the environment stays.
func FuzzRedirectTo(f *testing.F) {
	f.Add("HOME=/h\nGOCACHE=/x", "/p")
	f.Add("MAVEN_OPTS=-Dmaven.repo.local=/a -Dmaven.repo.local=\nnpm_CONFIG_cache=1\n=\nA", "/a b")
	f.Fuzz(func(t *testing.T, text, dir string) {
		dir = "/" + strings.ReplaceAll(strings.Trim(dir, "/"), "\x00", "")
		if strings.ContainsRune(dir, '\n') || filepath.Clean(dir) != dir {
			return
		}
		env := strings.Split(text, "\n")
		for _, tool := range table() {
			for _, c := range tool.Caches {
				got, ok := c.RedirectTo(env, dir)
				if !ok {
					continue
				}
				if at := c.Dir(got); c.Name != "maven" && at != dir && filepath.Dir(at) != dir {
					t.Errorf("%s: %q leads to %q, not to %q", c.Name, got, at, dir)
				}
				for _, e := range env {
					name, _, _ := strings.Cut(e, "=")
					if !sameVariable(name, c.Redirect.Name) && !slices.Contains(got, e) {
						t.Errorf("%s: %q was lost", c.Name, e)
					}
				}
			}
		}
	})
}

func TestDetect(t *testing.T) {
	ws := t.TempDir()
	for _, n := range []string{
		"go.mod", "a/package.json", "a/b/c/Cargo.toml", "a/b/c/d/e/f/g/pom.xml", "a/b/c/d/e/f/g/h/i/uv.lock",
		"x/build.gradle.kts/in",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(ws, n)), 0o755))
		must(t, os.WriteFile(filepath.Join(ws, n), nil, 0o644))
	}
	must(t, os.Symlink("nothing", filepath.Join(ws, "a", "yarn.lock")))
	cases := []struct {
		name, dir string
		want      string
		args      []string
	}{
		{"the workspace", "", "go", nil},
		{"a directory of it, and a link to nothing", "a", "go npm yarn", nil},
		{"the directories between", "a/b/c", "go npm yarn cargo", nil},
		{"not those beside", "x", "go gradle", nil},
		{"deep: the workspace and the nearest", "a/b/c/d/e/f/g/h/i", "go python maven", nil},
		{"a missing directory", "a/none", "go npm yarn", nil},
		{"outside", "..", "go", nil},
		{"slashes at the end", "a/", "go npm yarn", nil},
		{"its program", "x", "go gradle pnpm", []string{"/opt/pnpm", "add"}},
		{"by another name", "x", "go gradle npm", []string{"npx", "create"}},
		{"one of several tools", "x", "go gradle python", []string{"uv"}},
		{"a cache by itself", "x", "go gradle ccache", []string{"ccache", "cc"}},
		{"a program that may use one", "x", "go gradle", []string{"make"}},
		{"another program", "x", "go gradle", []string{"", "npm"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, tool := range Detect(ws, ws+"/"+c.dir, c.args) {
				got = append(got, tool.Name)
			}
			slices.Sort(got)
			want := strings.Fields(c.want)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkDetect guards 30 microseconds for a workspace with two toolchains.
func BenchmarkDetect(b *testing.B) {
	ws := b.TempDir()
	for _, n := range []string{"go.mod", "package.json"} {
		must(b, os.WriteFile(filepath.Join(ws, n), nil, 0o644))
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(Detect(ws, ws, nil)) != 2 {
			b.Fatal("not found")
		}
	}
}
