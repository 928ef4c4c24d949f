// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// fake is a file system on which these paths exist, with everything above them.
type fake []string

func (f fake) exists(name string) bool {
	return slices.ContainsFunc(f, func(n string) bool { return inside(n, name) })
}

func (fake) real(name string) string { return name }

// runOf is a run in the workspace /w, which contains a file, with the home /h.
func runOf(p sandbox.Policy, there ...string) *DeniedRun {
	return &DeniedRun{
		Policy: p.Bind(sandbox.Places{Dir: "/w", Home: "/h"}), Dir: "/w", Env: []string{"HOME=/h"},
		Named: true, Caches: true,
		files: fake(append(there, "/w/file", "/h")),
	}
}

func writes(names ...string) []sandbox.Denial {
	var ds []sandbox.Denial
	for _, n := range names {
		ds = append(ds, sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: n},
			Source: sandbox.Notified})
	}
	return ds
}

func reads(name string) []sandbox.Denial {
	return []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Read, Path: name}}}
}

// testCase is what a policy denied to a command on a file system with these paths, and the
// result for each: "RULE: GRANT".
type testCase struct {
	name   string
	policy sandbox.Policy
	there  []string
	ds     []sandbox.Denial
	want   []string
}

func (c testCase) check(t *testing.T) {
	t.Helper()
	ds := slices.Clone(c.ds)
	runOf(c.policy, c.there...).Complete(ds)
	var got []string
	for _, d := range ds {
		got = append(got, d.Rule+": "+d.Grant)
	}
	if diff := cmp.Diff(c.want, got); diff != "" {
		t.Error(diff)
	}
}

func TestComplete(t *testing.T) {
	ws := sandbox.WorkspaceWrite("/w")
	connect := func(network, addr string) []sandbox.Denial {
		return []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Connect, Net: network, Addr: addr}}}
	}
	one := func(d sandbox.Denial) []sandbox.Denial { return []sandbox.Denial{d} }
	srv := []string{"/srv/data/d/a", "/srv/data/d/b", "/srv/data/d/c", "/srv/data/d/d"}
	for _, test := range []testCase{
		{"a file", ws, []string{"/etc/hosts"}, writes("/etc/hosts"), []string{"/=read: --rw /etc/hosts"}},
		{"a new file needs its directory", ws, []string{"/srv/data"}, writes("/srv/data/new"), []string{"/=read: --rw /srv/data"}},
		{"a new file where the directory is too much", ws, []string{"/etc"}, writes("/etc/new"), []string{"/=read: "}},
		{"siblings", ws, srv, writes(srv...), slices.Repeat([]string{"/=read: --rw /srv/data/d"}, 4)},
		{"few siblings", ws, srv, writes(srv[:2]...), []string{"/=read: --rw /srv/data/d/a", "/=read: --rw /srv/data/d/b"}},
		{"siblings and another", ws, append([]string{"/etc/hosts"}, srv...), writes(append(srv, "/etc/hosts")...),
			append(slices.Repeat([]string{"/=read: --rw /srv/data/d"}, 4), "/=read: --rw /etc/hosts")},
		{"a setting of the kernel", ws, []string{"/proc/sys/vm/swappiness"}, writes("/proc/sys/vm/swappiness"), []string{"/=read: "}},
		{"a deny entry", ws.WithEntries(sandbox.PathEntry("/w/no", sandbox.LevelDeny)), nil, reads("/w/no/x"), []string{"/w/no=deny: "}},
		{"a deny glob", ws.WithEntries(sandbox.GlobEntry("**/.env")), []string{"/w/.env"}, reads("/w/.env"), []string{"deny /w/**/.env: "}},
		{"a path that is not shown", sandbox.Policy{}, []string{"/srv/data"}, reads("/srv/data"), []string{"not listed: --ro /srv/data"}},
		{"no network", ws, nil, connect("tcp", "93.184.216.34:443"), []string{"network=none: "}},
		{"the host's loopback", ws, nil, connect("tcp", "127.0.0.1:5432"), []string{": "}},
		{"a unix socket", ws, nil, connect("unix", "/run/docker.sock"), []string{"unix sockets: "}},
		{"a unix socket in a writable place", ws, nil, connect("unix", "/w/sock"), []string{"unix sockets: "}},
		{"listening", ws, nil, one(sandbox.Denial{Access: sandbox.Access{Op: sandbox.Bind, Addr: "192.0.2.1:80"}}), []string{"network=none: "}},
		{"a process outside", ws, nil, one(sandbox.Denial{Access: sandbox.Access{Op: sandbox.Signal}}), []string{"processes outside: "}},
		{"nothing known", ws, nil, one(sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write}}), []string{": "}},
		{"what the policy allows", ws, nil, writes("/w/hooks/x"), []string{": "}},
		{"the observer knows better", ws, nil, one(sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write, Path: "/etc/x"}, Rule: "r", Grant: "g"}), []string{"r: g"}},
	} {
		t.Run(test.name, test.check)
	}
}

func TestNamed(t *testing.T) {
	ws := sandbox.WorkspaceWrite("/w")
	git, npm := sandbox.Grant{Name: "git"}, sandbox.Grant{Name: "cache:npm"}
	repo := []string{"/w/.git/config", "/w/.git/hooks", "/w/sub/.git/index"}
	for _, test := range []testCase{
		{"the index of git", ws, repo, writes("/w/.git/index.lock"), []string{"/w/.git=read (protected): --grant git"}},
		{"many in git", ws, repo, writes("/w/.git/objects/a", "/w/.git/objects/b", "/w/.git/objects/c", "/w/.git/objects/d"),
			slices.Repeat([]string{"/w/.git=read (protected): --grant git"}, 4)},
		{"git's configuration", ws, repo, writes("/w/.git/config.lock", "/w/.git/config"),
			slices.Repeat([]string{"/w/.git=read (protected): --grant git --rw /w/.git/config"}, 2)},
		{"git's configuration with the grant", ws.With(git), repo, writes("/w/.git/config"), []string{"/w/.git=read (protected): --rw /w/.git/config"}},
		{"a hook", ws, repo, writes("/w/.git/hooks/pre-commit"), []string{"/w/.git=read (protected): "}},
		{"a hook that is there", ws, []string{"/w/.git/hooks/pre-commit"}, writes("/w/.git/hooks/pre-commit"), []string{"/w/.git=read (protected): "}},
		{"a new key", ws, []string{"/home/a/.ssh/config"}, writes("/home/a/.ssh/known_hosts"), []string{"/=read: "}},
		{"a new file of the system", ws, []string{"/var/lib"}, writes("/var/lib/x"), []string{"/=read: "}},
		{"the home", ws, []string{"/h"}, writes("/h/x"), []string{"/=read: "}},
		{"a directory of the home", ws, []string{"/h/src"}, writes("/h/src/x"), []string{"/=read: --rw /h/src"}},
		{"a new repository", ws, nil, writes("/w/.git"), []string{"/w/.git=read (protected): --grant git"}},
		{"the repository itself", ws, repo, writes("/w/.git"), []string{"/w/.git=read (protected): "}},
		{"the grant was not given", ws.With(git), append(repo, "/w/.git/HEAD"), writes("/w/.git/HEAD"), []string{"/w/.git=read (protected): --rw /w/.git/HEAD"}},
		{"a submodule", ws, repo, writes("/w/.git/modules/sub/index.lock"), []string{"/w/.git=read (protected): --grant git"}},
		{"the hooks of one", ws, repo, writes("/w/.git/modules/a/b/hooks/x"), []string{"/w/.git=read (protected): "}},
		{"a nested repository", ws, repo, writes("/w/sub/.git/index"), []string{"/w/sub/.git=read (protected): --grant git"}},
		{"a repository elsewhere", ws, []string{"/srv/r/.git/index"}, writes("/srv/r/.git/index"), []string{"/=read: --rw /srv/r/.git/index"}},
		{"a policy that keeps git", ws.WithEntries(sandbox.PathEntry("/w/.git", sandbox.LevelRead)), []string{"/w/.git/index"}, writes("/w/.git/index"),
			[]string{"/w/.git=read: --rw /w/.git/index"}},
		{"git under a read-only policy", sandbox.ReadOnly(), []string{"/w/.git/index"}, writes("/w/.git/index"), []string{"/=read: --rw /w/.git/index"}},

		{"an editor's settings", ws, []string{"/w/.vscode"}, writes("/w/.vscode/tasks.json", "/w/.vscode"), slices.Repeat([]string{"/w/.vscode=read (protected): --grant editor-config"}, 2)},
		{"an agent's settings", ws, []string{"/w/.mcp.json"}, writes("/w/.mcp.json", "/w/.claude/hooks/x"),
			[]string{"/w/.mcp.json=read (protected): --grant agent-config",
				"/w/.claude=read (protected): --grant agent-config"}},
		{"settings with the grant", ws.With(sandbox.Grant{Name: "editor-config"}), []string{"/w/.vscode"}, writes("/w/.vscode/x", "/w/.claude/x"),
			[]string{"/w/.vscode=read (protected): ", "/w/.claude=read (protected): --grant agent-config"}},
		{"settings that the policy keeps", ws.WithEntries(sandbox.PathEntry("/w/.idea", sandbox.LevelRead)), []string{"/w/.idea/x"}, writes("/w/.idea/x"), []string{"/w/.idea=read: "}},
		{"settings in a subdirectory, and elsewhere", ws, []string{"/w/sub/.idea/x", "/srv/.idea/x"}, writes("/w/sub/.idea/x", "/srv/.idea/x"), []string{": ", "/=read: "}},

		{"npm's cache", ws, []string{"/h/.npm/x"}, writes("/h/.npm/_cacache/a", "/h/.npm/_logs/b"), slices.Repeat([]string{"/=read: --grant cache:npm"}, 2)},
		{"pip's cache, that is not there", ws, nil, writes("/h/.cache/pip/x"), []string{"/=read: --grant cache:pip"}},
		{"a cache by a grant that did not help", ws.With(npm), []string{"/h/.npm/x"}, writes("/h/.npm/x"), []string{"/=read: --rw /h/.npm/x"}},
		{"a cache with an entry of its own", ws.WithEntries(sandbox.PathEntry("/h/.npm", sandbox.LevelRead)), []string{"/h/.npm/x"}, writes("/h/.npm/x"), []string{"/h/.npm=read: --rw /h/.npm/x"}},
		{"a denied cache", ws.WithEntries(sandbox.PathEntry("/h", sandbox.LevelDeny)), nil, writes("/h/.npm/x"), []string{"/h=deny: "}},
		{"reading a cache that is not shown", sandbox.Policy{}, []string{"/h/.npm/x"}, reads("/h/.npm/x"), []string{"not listed: --ro /h/.npm/x"}},
	} {
		t.Run(test.name, test.check)
	}
	t.Run("no named grants there", func(t *testing.T) {
		c, ds := runOf(ws, repo...), writes("/w/.git/config", "/h/.npm/x")
		c.Named = false
		c.Complete(ds)
		if ds[0].Grant != "--rw /w/.git/config" || strings.Contains(ds[1].Grant, "--grant") {
			t.Errorf("%q and %q", ds[0].Grant, ds[1].Grant)
		}
	})
	t.Run("no caches", func(t *testing.T) {
		c, ds := runOf(ws, "/h/.npm/x"), writes("/h/.npm/x")
		c.Caches = false
		if c.Complete(ds); ds[0].Grant != "--rw /h/.npm/x" {
			t.Errorf("%q", ds[0].Grant)
		}
	})
	t.Run("another machine", func(t *testing.T) {
		c, ds := runOf(ws), writes("/srv/data/new", "/w/.git/index", "/h/.npm/x")
		c.files = nil
		c.Complete(ds)
		if ds[0].Grant != "--rw /srv/data/new" || ds[1].Grant != "--grant git" ||
			ds[2].Grant != "--grant cache:npm" {
			t.Errorf("%q", ds)
		}
	})
}

// TestSuggestionsSuffice checks that every suggestion allows its access, and that an access
// that no rule denies gets no path.
func TestSuggestionsSuffice(t *testing.T) {
	names := []string{"/", "/a", "/a/b", "/a/b/c", "/a/b/d", "/a/b/e", "/a/b/f", "/a/.git", "/a/.git/index",
		"/a/b/.git/config", "/h/.npm/x", "/h", "/x.env"}
	rapid.Check(t, func(t *rapid.T) {
		var es []sandbox.Entry
		for range rapid.IntRange(0, 5).Draw(t, "entries") {
			name := rapid.SampledFrom(names).Draw(t, "entry")
			if name == "/x.env" {
				es = append(es, sandbox.GlobEntry("/a/**/"+
					rapid.SampledFrom([]string{"c", "index", "*"}).Draw(t, "glob")))
				continue
			}
			es = append(es, sandbox.PathEntry(name, sandbox.Level(rapid.IntRange(0, 2).Draw(t, "level"))))
		}
		p, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone, es...)
		if err != nil {
			t.Fatal(err)
		}
		var ds []sandbox.Denial
		for _, n := range rapid.SliceOfN(rapid.SampledFrom(names), 1, 12).Draw(t, "denied") {
			op := rapid.SampledFrom([]sandbox.Op{sandbox.Read, sandbox.Write, sandbox.Exec}).Draw(t, "op")
			ds = append(ds, sandbox.Denial{Access: sandbox.Access{Op: op, Path: n}})
		}
		c := runOf(p, rapid.SliceOfN(rapid.SampledFrom(names), 0, 8).Draw(t, "there")...)
		c.Complete(ds)
		for _, d := range ds {
			if d.Grant == "" {
				continue
			}
			gs, ok := sandbox.ParseGrants(d.Grant)
			if !ok {
				t.Fatalf("%q cannot be read", d.Grant)
			}
			named := slices.ContainsFunc(gs, func(g sandbox.Grant) bool { return g.Name != "" })
			switch {
			case named && !strings.Contains(d.Path, "/.git") && !strings.HasPrefix(d.Path, "/h/.npm"):
				t.Fatalf("%v gets %s", d, d.Grant)
			case !named && c.Policy.Rule(d.Access) == sandbox.Allow:
				t.Fatalf("%v is allowed and gets %s", d, d.Grant)
			case !named && c.Policy.With(gs...).Rule(d.Access) != sandbox.Allow:
				t.Fatalf("%v gets %s, which does not help", d, d.Grant)
			case c.Policy.LevelAt(d.Path) == sandbox.LevelDeny && named:
				t.Fatalf("%v is denied and gets %s", d, d.Grant)
			}
			for _, g := range gs {
				if g.Path != "" && path.Dir(g.Path) == "/" {
					t.Fatalf("%v gets %s", d, d.Grant)
				}
			}
		}
	})
}

// everything is a file system on which every path exists.
type everything struct{ fake }

func (everything) exists(string) bool { return true }

// TestManyDenials completes several hundred denials.
func TestManyDenials(t *testing.T) {
	var ds []sandbox.Denial
	for i := range 200 {
		ds = append(ds, writes(fmt.Sprintf("/srv/data/%d/x", i%7), fmt.Sprintf("/srv/more/f%d", i))...)
	}
	c := runOf(sandbox.WorkspaceWrite("/w").WithEntries(sandbox.GlobEntry("**/*.env")))
	c.files = everything{}
	c.Complete(ds)
	for i, d := range ds {
		if want := []string{"--rw /srv/data/", "--rw /srv/more"}[i%2]; !strings.HasPrefix(d.Grant, want) {
			t.Fatalf("%v gets %q", d, d.Grant)
		}
	}
}

// TestSettings: nothing is suggested for writes to sallyport's own settings: a run that opens them
// is refused.
func TestSettings(t *testing.T) {
	t.Setenv("HOME", "/h")
	t.Setenv("XDG_CONFIG_HOME", "/c")
	for path, want := range map[string]string{
		"/h/.config/sallyport/config.toml": "", "/c/sallyport": "", "/etc/sallyport/managed.toml": "", "/c/other/x": "--rw /c/other/x",
	} {
		ds := writes(path)
		r := runOf(sandbox.WorkspaceWrite("/w"), path)
		r.Local = true
		r.Complete(ds)
		if got := ds[0].Grant + ds[0].Wider; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func (fake) database(name string) bool { return strings.HasSuffix(name, ".sqlite") }

func (fake) holds(string, string) bool { return false }

func (fake) may(sandbox.Op, string) bool { return true }
