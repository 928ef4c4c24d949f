// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package protect

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// lay makes a tree: names that end in a slash are directories, "a -> b" is a link,
// "a = text" a file, "a |" a named pipe.
func lay(t *testing.T, entries ...string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, text, isFile := strings.Cut(e, " = ")
		link, target, isLink := strings.Cut(e, " -> ")
		pipe, isPipe := strings.CutSuffix(e, " |")
		switch {
		case isPipe:
			err = syscall.Mkfifo(filepath.Join(base, pipe), 0o600)
		case isFile:
			err = os.WriteFile(filepath.Join(base, name),
				[]byte(strings.ReplaceAll(text, "BASE", base)), 0o600)
		case isLink:
			err = os.Symlink(strings.ReplaceAll(target, "BASE", base), filepath.Join(base, link))
		default:
			err = os.MkdirAll(filepath.Join(base, e), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// named gathers a policy and prints what came of it, without the base.
func named(t *testing.T, base string, entries ...sandbox.Entry) ([]string, error) {
	t.Helper()
	for i := range entries {
		entries[i].Place.Path = filepath.Join(base, entries[i].Place.Path)
	}
	p, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone,
		append(entries, sandbox.PathEntry("/", sandbox.LevelRead))...)
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	rules, patterns, err := ByName(&res, nil, nil)
	kinds := map[plan.Kind]string{plan.KindMissing: "missing", plan.KindDirectory: "directory",
		plan.KindFile: "file", plan.KindOther: "other"}
	var out []string
	for _, r := range rules {
		out = append(out, strings.Join([]string{strings.TrimPrefix(r.Path, base), r.Level.String(),
			kinds[r.Kind]}, " "))
	}
	for _, g := range patterns {
		out = append(out, strings.TrimPrefix(g.Glob, base)+" "+g.Level.String())
	}
	return out, err
}

func TestGatherNames(t *testing.T) {
	write := func(name string) sandbox.Entry { return sandbox.PathEntry(name, sandbox.LevelWrite) }
	deny := func(name string) sandbox.Entry { return sandbox.PathEntry(name, sandbox.LevelDeny) }
	cases := []struct {
		name    string
		tree    []string
		entries []sandbox.Entry
		want    []string
	}{
		{"missing protected names", []string{"w/.git"}, []sandbox.Entry{write("w")},
			[]string{"/w write directory", "/w/.agents read missing", "/w/.codex read missing",
				"/w/.git read directory", "/w/.sallyport read missing"}},
		{"worktree", []string{"w/", "main/.git/worktrees/w", "w/.git = gitdir: BASE/main/.git/worktrees/w\n", "main/.git/worktrees/w/commondir = ../..\n"}, []sandbox.Entry{write("w")},
			[]string{"/main/.git read directory", "/main/.git/worktrees/w read directory",
				"/w write directory", "/w/.agents read missing", "/w/.codex read missing",
				"/w/.git read file", "/w/.sallyport read missing"}},
		{"what git obeys elsewhere", []string{"w/.git/objects", "w/.git/config = [core]\nhooksPath = tools/hooks\n[include]\npath = ../more\n"}, []sandbox.Entry{write("w")},
			[]string{"/w write directory", "/w/.agents read missing", "/w/.codex read missing",
				"/w/.git read directory", "/w/.sallyport read missing",
				"/w/more read missing", "/w/tools/hooks read missing"}},
		{"files that other programs run later", []string{"w/.vscode", "w/.envrc = x", "w/sub/.idea", "w/.hg"}, []sandbox.Entry{write("w"), write("w/.hg")},
			[]string{"/w write directory", "/w/.agents read missing", "/w/.codex read missing",
				"/w/.envrc read file", "/w/.git read missing", "/w/.hg write directory",
				"/w/.hg/.agents read missing", "/w/.hg/.codex read missing", "/w/.hg/.git read missing",
				"/w/.hg/.sallyport read missing",
				"/w/.sallyport read missing", "/w/.vscode read directory"}},
		{"a root behind a link", []string{"real", "w -> BASE/real"}, []sandbox.Entry{write("w")},
			[]string{"/real write directory", "/real/.agents read missing", "/real/.codex read missing",
				"/real/.git read missing", "/real/.sallyport read missing"}},
		{"something missing that is denied", []string{"d", "link -> d"}, []sandbox.Entry{deny("link/x/y")}, []string{"/d/x/y deny missing"}},
		{"a pattern behind a link, with a link that matches", []string{"d*/in", "d*/secret = x", "link -> d*", "d*/in/a.env -> ../secret"},
			[]sandbox.Entry{sandbox.GlobEntry("link/**/*.env")},
			[]string{"/d*/secret deny file", `/d\*/**/*.env deny`}},
		{"links at protected names", []string{"w/x", "y", "w/.agents -> x", "w/.codex -> none", "w/.git -> ../y",
			"w/.vscode -> x", "w/.sallyport -> .sallyport"}, []sandbox.Entry{write("w")},
			[]string{"/w write directory", "/w/.agents read file", "/w/.codex read file", "/w/.git read file",
				"/w/.sallyport read file", "/w/.vscode read file", "/w/none read missing",
				"/w/x read directory", "/y read directory"}},
		{"what is denied through a link", []string{"w/real", "w/l -> real"},
			[]sandbox.Entry{write("w"), deny("w/l/x")},
			[]string{"/w write directory", "/w/.agents read missing", "/w/.codex read missing", "/w/.git read missing",
				"/w/.sallyport read missing", "/w/l read file", "/w/real/x deny missing"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := named(t, lay(t, c.tree...), c.entries...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGatherNamesRefuses: a place that a command could redirect is not used.
func TestGatherNamesRefuses(t *testing.T) {
	write := func(name string) sandbox.Entry { return sandbox.PathEntry(name, sandbox.LevelWrite) }
	cases := []struct {
		name    string
		tree    []string
		entries []sandbox.Entry
		is      func(error) bool
	}{
		{"a root through a link in a root", []string{"w", "x", "w/l -> ../x"}, []sandbox.Entry{write("w"), write("w/l")}, isUnsupported},
		{"what is read-only through such a link", []string{"w/real", "w/l -> real"},
			[]sandbox.Entry{write("w"), sandbox.PathEntry("w/l/x", sandbox.LevelRead)}, isUnsupported},
		{"a protected name that is a pipe", []string{"w", "w/.git |"}, []sandbox.Entry{write("w")}, isUnsupported},
		{"a missing root", nil, []sandbox.Entry{write("w")}, isRootError},
		{"a loop", []string{"a -> b", "b -> a"}, []sandbox.Entry{sandbox.PathEntry("a/x", sandbox.LevelDeny)}, isRootError},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, err := named(t, lay(t, c.tree...), c.entries...); !c.is(err) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// TestGatherNamesShowsLinks: where only listed paths are visible, so are the
// links that lead to them, and no others.
func TestGatherNamesShowsLinks(t *testing.T) {
	base := lay(t, "d/e", "d/f = x", "l1 -> d", "d/l2 -> e", "l3 -> d/f")
	entries := []sandbox.Entry{
		sandbox.PathEntry(filepath.Join(base, "l1/l2"), sandbox.LevelRead),
		sandbox.PathEntry(filepath.Join(base, "l3"), sandbox.LevelDeny),
	}
	for _, c := range []struct {
		name string
		root sandbox.Level
		want []string
	}{
		{"only listed", sandbox.LevelDeny, []string{"/d/e read", "/d/f deny", "/d/l2 read", "/l1 read"}},
		{"all", sandbox.LevelRead, []string{"/d/e read", "/d/f deny"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone,
				append(entries, sandbox.PathEntry("/", c.root))...)
			if err != nil {
				t.Fatal(err)
			}
			res, err := p.Resolve()
			if err != nil {
				t.Fatal(err)
			}
			rules, _, err := ByName(&res, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range rules {
				got = append(got, strings.TrimPrefix(r.Path, base)+" "+r.Level.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSettingsByName: where a sandbox judges by name, settings in a writable root are read-only,
// also missing ones, and refused where they cannot be.
func TestSettingsByName(t *testing.T) {
	base := lay(t, "ws/set/", "ws/open/in/", "out/set/", "ws/link -> BASE/out")
	for _, tt := range []struct {
		name, settings, root, want string
		refused                    bool
	}{
		{name: "there", settings: "ws/set", want: "/ws/set read"},
		{name: "missing", settings: "ws/none/set", want: "/ws/none/set read"},
		{name: "outside", settings: "out/set"},
		{name: "behind a link that can be changed", settings: "ws/link/set", refused: true},
		{name: "a root in it", settings: "ws/open", root: "ws/open/in", refused: true},
		{name: "itself a root", settings: "ws/open", root: "ws/open", refused: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone,
				sandbox.PathEntry("/", sandbox.LevelRead),
				sandbox.PathEntry(filepath.Join(base, "ws"), sandbox.LevelWrite))
			if err != nil {
				t.Fatal(err)
			}
			if tt.root != "" {
				p = p.WithEntries(sandbox.PathEntry(filepath.Join(base, tt.root), sandbox.LevelWrite))
			}
			res, err := p.Resolve()
			if err != nil {
				t.Fatal(err)
			}
			rules, _, err := ByName(&res, nil, []string{filepath.Join(base, tt.settings)})
			if isUnsupported(err) != tt.refused || err != nil && !tt.refused {
				t.Fatal(err)
			}
			got := ""
			for _, r := range rules {
				if r.Why == whySettings {
					got += strings.TrimPrefix(r.Path, base) + " " + r.Level.String()
				}
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func isUnsupported(err error) bool {
	var no *sandbox.UnsupportedError
	return errors.As(err, &no)
}

func isRootError(err error) bool {
	var no *executor.RootError
	return errors.As(err, &no)
}

// TestResolveLikeTheKernel: for what exists, the name is the one that the
// standard library finds.
func TestResolveLikeTheKernel(t *testing.T) {
	base := lay(t, "a/b/c", "l1 -> a", "l2 -> BASE/l1/b", "a/up -> ../a/./b", "a/b/root -> /", "f = x")
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "l1", "l2", "up", "root", "f",
			"none"}), 0, 5).Draw(t, "parts")
		name := filepath.Join(append([]string{base}, parts...)...)
		got, err := KernelName(name)
		want, werr := filepath.EvalSymlinks(name)
		if errors.Is(err, fs.ErrPermission) && errors.Is(werr, fs.ErrPermission) {
			return // /root of another user
		}
		if err != nil {
			t.Fatal(err)
		}
		if werr == nil && got != want {
			t.Fatalf("%s is %s, not %s", name, want, got)
		}
		if spot, _ := new(ruleset).lookAt(got); werr != nil && spot.Kind != plan.KindMissing {
			t.Fatalf("%s is said to be %s, which exists", name, got)
		}
	})
}

// TestStoredName: an entry found by another spelling has the name that the
// directory lists. Where case counts, a second name for the same file stands in
// for another spelling.
func TestStoredName(t *testing.T) {
	base := lay(t, "Stored = x")
	st, err := os.Lstat(filepath.Join(base, "Stored"))
	if err != nil {
		t.Fatal(err)
	}
	s := &ruleset{byName: true, entries: map[string][]string{}}
	for _, c := range []struct{ name, given string }{{"as it is", "Stored"},
		{"in another spelling", "stored"}} {
		t.Run(c.name, func(t *testing.T) {
			if got := s.stored(base, c.given, st); got != "Stored" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestMatchShut: a link that leads into a directory of the user's that is closed may lead to a secret.
func TestMatchShut(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Geteuid() == 0 {
		return // nothing is closed to root
	}
	base := lay(t, "shut", "shut/key = x", "a.pem -> BASE/shut/key", "b.pem -> BASE/none/key")
	if err := os.Chmod(base+"/shut", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(base+"/shut", 0o700) })
	s := &ruleset{entries: map[string][]string{}, rules: map[string]plan.Rule{}}
	var at *executor.RootError
	if err := s.match(base + "/a.pem"); !errors.As(err, &at) || at.Path != base+"/shut/key" {
		t.Errorf("into a closed directory: %v", err)
	}
	if err := s.match(base + "/b.pem"); err != nil {
		t.Errorf("to nothing: %v", err)
	}
}
