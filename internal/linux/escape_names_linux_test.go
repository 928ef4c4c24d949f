// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestProtectedNames(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	for _, n := range []string{".codex", ".agents", ".sallyport"} {
		must(t, os.Mkdir(a.ws+"/"+n, 0o755))
		write(t, a.ws+"/"+n+"/config", "mine")
	}
	unchanged(t, a.ws+"/.git", a.ws+"/.codex", a.ws+"/.agents", a.ws+"/.sallyport", a.out)
	a.expect(t, wordDenied, &job{}, append(gitAttacks(), "ws-rename"), "git="+a.ws+"/.git")
	for _, n := range []string{".codex", ".agents", ".sallyport"} {
		t.Run(n, func(t *testing.T) {
			at := "at=" + a.ws + "/" + n
			a.expect(t, wordDenied, &job{}, []string{"append-at", "chmod-at"}, at+"/config")
			a.expect(t, wordDenied, &job{}, []string{"remove-at"}, at)
			if res := mustRun(t, a, &job{args: sh(`cat "$1/config"`, a.ws+"/"+n)}); res.out != "mine" {
				t.Errorf("it cannot be read: %+v", res)
			}
		})
	}
}

// TestGitElsewhere protects what a .git file and a commondir point to.
func TestGitElsewhere(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	real := a.ws + "/dir/real.git"
	common := a.ws + "/dir/common.git"
	must(t, os.Rename(a.ws+"/.git", real))
	must(t, os.MkdirAll(common+"/hooks", 0o755))
	write(t, common+"/config", "[core]\n")
	write(t, real+"/commondir", "../common.git\n")
	write(t, a.ws+"/.git", "gitdir: dir/real.git\n")
	unchanged(t, real, common)
	for _, git := range []string{real, common} {
		t.Run(strings.TrimPrefix(git, a.ws+"/dir/"), func(t *testing.T) {
			a.expect(t, wordDenied, &job{}, []string{"git-hook", "git-config", "git-remove", "git-move",
				"git-chmod"}, "git="+git)
		})
	}
	t.Run("pointer", func(t *testing.T) {
		a.expect(t, wordDenied, &job{}, []string{"append-at", "chmod-at", "remove-at"}, "at="+a.ws+"/.git")
	})
}

// TestVanishedName: a protected name that is gone at the launch is planned for anew.
func TestVanishedName(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	name := a.ws + "/.codex"
	must(t, os.Mkdir(name, 0o755))
	ready := make(chan struct{})
	r := a.request(&job{args: sh(`mkdir .codex 2>/dev/null && exit 3; exit 0`)})
	r.Ready = ready
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	ctx := &once{Context: t.Context(), f: func() { must(t, os.Remove(name)); close(ready) }}
	c, err := a.host.Start(ctx, r, [3]*os.File{null, null, null})
	must(t, err)
	code, _, err := c.Wait()
	must(t, errors.Join(err, c.WaitAll(), c.Close(new(executor.Exit))))
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// once calls a function when somebody waits for it the first time: that is when
// the plan is made.
type once struct {
	context.Context
	f func()
}

func (o *once) Done() <-chan struct{} {
	if f := o.f; f != nil {
		o.f = nil
		f()
	}
	return o.Context.Done()
}

// linkedNames are workspaces where a protected name is a symbolic link, with what must be closed there.
var linkedNames = []struct {
	name   string
	links  map[string]string // by their paths
	dirs   []string
	closed []string // paths that cannot be written, made or removed
}{
	{
		"to a directory beside it", map[string]string{".codex": "dir"}, nil,
		[]string{"dir/new", ".codex/new"},
	},
	{
		"to a protected name", map[string]string{".agents": ".claude"}, []string{".claude"},
		[]string{".claude/new"},
	},
	{
		"from a name that others obey", map[string]string{".claude": ".agents"}, []string{".agents"},
		[]string{".agents/new"},
	},
	{"to an editor's settings", map[string]string{".vscode": "dir"}, nil, []string{"dir/new"}},
	{"out of the workspace", map[string]string{".idea": "../out", ".agents": "../out"}, nil, nil},
	{
		"leading nowhere", map[string]string{".agents": "none", ".vscode": "../none", ".codex": "a/b/c"}, nil,
		[]string{"none", "a/b/c"},
	},
	{
		"by two links", map[string]string{".agents": "way/x", "way": "dir"}, []string{"dir/x"},
		[]string{"dir/x/new"},
	},
	{"in a circle", map[string]string{".agents": ".codex", ".codex": ".agents"}, nil, nil},
	{"to the workspace itself", map[string]string{".agents": "."}, nil, nil},
	{
		"a git directory", map[string]string{".git": "real"}, []string{"real/objects", "real/refs", "real/hooks"},
		[]string{"real/hooks/post-checkout", "real/config", ".git/config"},
	},
	{"a git directory that is missing", map[string]string{".git": "real"}, nil, []string{"real"}},
	{
		"a nested git directory", map[string]string{"dir/.git": "../real"}, []string{"real/objects", "real/refs"},
		[]string{"real/config"},
	},
	{
		"a directory in a protected one", map[string]string{".claude/skills": "../dir"}, []string{".claude"},
		[]string{".claude/new"},
	},
}

// TestProtectedLinks: a protected name that is a symbolic link stays as it is, what it leads to is closed,
// and commands run.
func TestProtectedLinks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, c := range linkedNames {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			must(t, os.RemoveAll(a.ws+"/.git"))
			must(t, os.RemoveAll(a.ws+"/.codex"))
			for _, d := range c.dirs {
				must(t, os.MkdirAll(a.ws+"/"+d, 0o755))
				if filepath.Base(d) == "objects" {
					write(t, a.ws+"/real/HEAD", "ref: refs/heads/main\n")
				}
			}
			for link, target := range c.links {
				must(t, os.Symlink(target, a.ws+"/"+link))
			}
			for _, name := range c.closed {
				attack := `mkdir -p "$(dirname "$1")" 2>/dev/null
					{ echo x >"$1" || mkdir "$1" || ln -s /etc "$1"; } 2>/dev/null
					[ -e "$1" ] && echo "made $1"; true`
				if res := mustRun(t, a, &job{args: sh(attack, name)}); res.out != "" {
					t.Error(res.out)
				}
			}
			for link, target := range c.links {
				attack := `cd "$(dirname "$1")"; n=$(basename "$1"); mkdir evil
					ln -sfn /tmp "$n"; mv -T evil "$n"; rm -f "$n"; mv "$n" away; ln -s /tmp y; mv -T y "$n"
					cd ..; mv "$(basename "$OLDPWD")" moved`
				_, err := a.run(t, &job{args: sh(attack, link)})
				must(t, err)
				if got, err := os.Readlink(a.ws + "/" + link); err != nil || got != target {
					t.Errorf("%s leads to %q now: %v", link, got, err)
				}
			}
		})
	}
}

// TestProtectedLinksRefused: where nothing can be mounted over a symbolic link, one at a protected name
// ends the start, because the command could lead it elsewhere.
func TestProtectedLinksRefused(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, name := range []string{".git", ".codex", ".vscode"} {
		t.Run(name, func(t *testing.T) {
			a := atLevel(t, plan.LevelBwrap)
			must(t, os.RemoveAll(a.ws+"/"+name))
			must(t, os.Symlink("dir", a.ws+"/"+name))
			_, err := a.run(t, &job{args: sh(`:`)})
			var no *sandbox.UnsupportedError
			if !errors.As(err, &no) || !strings.Contains(no.Error(), a.ws+"/"+name) ||
				!strings.Contains(no.Error(), "symbolic link") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestDeniedNames(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	secret := a.out + "/secret"
	must(t, os.MkdirAll(secret+"/open/deep", 0o755))
	for _, f := range []string{secret + "/file", secret + "/open/file", a.ws + "/one.key", a.ws +
		"/dir/two.key", a.out + "/three.key", a.out + "/linked"} {
		write(t, f, "secret")
	}
	must(t, os.Symlink(a.out+"/linked", a.ws+"/four.key"))
	must(t, os.Mkdir(a.ws+"/hidden", 0o755))
	write(t, a.ws+"/hidden/file", "secret")
	p := a.policy().WithEntries(
		sandbox.PathEntry(secret, sandbox.LevelDeny),
		sandbox.PathEntry(secret+"/open", sandbox.LevelRead),
		sandbox.PathEntry(a.out+"/other", sandbox.LevelDeny),
		sandbox.PathEntry(a.ws+"/hidden", sandbox.LevelDeny),
		sandbox.GlobEntry(a.ws+"/**/*.key"),
		sandbox.GlobEntry(a.out+"/*.key"))
	unchanged(t, a.out, a.ws+"/hidden")
	for name, at := range map[string]string{
		"file in directory": secret + "/file", "file": a.out + "/other", "file below a root": a.ws + "/hidden/file",
		"pattern": a.ws + "/one.key", "deep pattern": a.ws + "/dir/two.key", "pattern outside": a.out + "/three.key",
		"target of a matching link": a.out + "/linked", "matching link": a.ws + "/four.key",
		"through /proc": "/proc/self/root" + secret + "/file", "through a cwd": "/proc/self/cwd/hidden/file",
	} {
		t.Run(name, func(t *testing.T) {
			a.expect(t, wordDenied, &job{policy: &p},
				[]string{"read-at", "append-at", "chmod-at", "write-at"}, "at="+at)
		})
	}
	t.Run("directory", func(t *testing.T) {
		a.expect(t, wordDenied, &job{policy: &p}, []string{"list-at", "chmod-at", "remove-at"}, "at="+secret)
		a.expect(t, wordDenied, &job{policy: &p}, []string{"list-at", "chmod-at", "remove-at"}, "at="+
			a.ws+"/hidden")
	})
	t.Run("reopened", func(t *testing.T) {
		res := mustRun(t, a, &job{policy: &p,
			args: sh(`cat "$1/open/file" && ls "$1/open" && ! ls "$1" && ! echo x >"$1/open/new"`, secret)})
		if res.code != 0 || res.out != "secretdeep\nfile\n" {
			t.Errorf("%+v", res)
		}
	})
	t.Run("working directory", func(t *testing.T) {
		_, err := a.run(t, &job{policy: &p, dir: a.ws + "/hidden", args: sh(`:`)})
		var dir *executor.DirError
		if !errors.As(err, &dir) || dir.Dir != a.ws+"/hidden" {
			t.Errorf("%T %v", err, err)
		}
	})
	t.Run("program", func(t *testing.T) {
		q := a.policy().WithEntries(sandbox.PathEntry(os.Getenv(programVar), sandbox.LevelDeny))
		if _, err := a.run(t, &job{policy: &q, args: []string{os.Getenv(programVar)}}); err == nil {
			t.Error("a denied program was started")
		}
	})
}

// TestWritableBelowReadable holds the most specific rule against others.
func TestWritableBelowReadable(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	must(t, os.MkdirAll(a.ws+"/dir/ro/rw", 0o755))
	p := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/dir/ro", sandbox.LevelRead),
		sandbox.PathEntry(a.ws+"/dir/ro/rw", sandbox.LevelWrite))
	res := mustRun(t, a, &job{policy: &p,
		args: sh(`echo x >dir/a && ! (echo x >dir/ro/b) && echo x >dir/ro/rw/c && ! mv dir/ro dir/r && ! rm -r dir/ro/rw`)})
	if res.code != 0 {
		t.Errorf("%+v", res)
	}
}

func TestRoots(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	second := a.base + "/second"
	must(t, os.MkdirAll(second+"/.git", 0o755))
	must(t, os.Symlink(second, a.base+"/link"))
	write(t, a.base+"/single", "old")
	in, err := os.MkdirTemp("/tmp", "sallyport-root-")
	must(t, err)
	defer os.RemoveAll(in)
	shm, err := os.MkdirTemp("/dev/shm", "sallyport-root-")
	must(t, err)
	defer os.RemoveAll(shm)
	defer os.Remove("/dev/shm/ws")
	write(t, in+"/beside", "x")
	unchanged(t, a.out)
	tests := []struct {
		name   string
		roots  []string
		script string // fails when something is wrong
		wrote  string // must be there afterwards
	}{
		{"several", []string{a.ws, second}, `echo x >"$1/n1" && echo x >"$2/n1" && ! echo x >"$2/.git/x"`, second + "/n1"},
		{"nested", []string{a.ws, a.ws + "/dir"}, `echo x >"$1/n2" && echo x >"$2/n2"`, a.ws + "/dir/n2"},
		{"through a link", []string{a.ws, a.base + "/link"}, `echo x >"$2/n3" && ! echo x >"$2/.git/x"`, second + "/n3"},
		{"file", []string{a.ws, a.base + "/single"}, `echo new >"$2" && ! rm "$2" && ! mv "$2" "$2.old" && ! echo x >"$2.other"`, a.base + "/single"},
		{"in /tmp", []string{a.ws, in}, `echo x >"$2/n4" && test "$(ls -A /tmp)" = "$(basename "$2")" && echo y >/tmp/not-on-host`, in + "/n4"},
		{"in /dev/shm", []string{a.ws, shm}, `echo x >"$2/n6" && test "$(ls -A /dev/shm)" = "$(basename "$2")" && echo y >/dev/shm/not-on-host`, shm + "/n6"},
		{"all of /dev/shm", []string{a.ws, "/dev/shm"}, `echo x >"$2/$(basename "$1")" && ls -d /dev/shm/sallyport-root-*`, "/dev/shm/ws"},
		{"only in /tmp", []string{in}, `echo x >"$1/n5"`, in + "/n5"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := bind(sandbox.WorkspaceWrite(test.roots...), a.ws)
			res, err := a.run(t, &job{policy: &p, dir: test.roots[0], args: sh(test.script, test.roots...)})
			if err != nil || res.code != 0 {
				t.Fatalf("%+v %v", res, err)
			}
			if b, err := os.ReadFile(test.wrote); err != nil || len(b) == 0 {
				t.Errorf("%q %v", b, err)
			}
		})
	}
	if _, err := os.Lstat("/tmp/not-on-host"); err == nil {
		t.Error("/tmp of the host was written to")
	}
	if _, err := os.Lstat("/dev/shm/not-on-host"); err == nil {
		t.Error("/dev/shm of the host was written to")
	}
}

// TestRootInRun needs root, who alone may make a directory there.
func TestRootInRun(t *testing.T) {
	testenv.NeedRoot(t)
	a := newArena(t)
	run, err := os.MkdirTemp("/run", "sallyport-root-")
	must(t, err)
	defer os.RemoveAll(run)
	p := bind(sandbox.WorkspaceWrite(run), run)
	res := mustRun(t, a, &job{policy: &p, dir: run,
		args: sh(`echo x >here && test "$(ls /run)" = "$(basename "$PWD")" && ! echo x >/run/y`)})
	if res.code != 0 {
		t.Errorf("%+v", res)
	}
	if _, err := os.Lstat(run + "/here"); err != nil {
		t.Error(err)
	}
}

// TestPlantedRoots refuses a root that a command of another root can redirect.
func TestPlantedRoots(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	unchanged(t, a.out)
	must(t, os.Symlink(a.out, a.ws+"/planted"))
	p := bind(sandbox.WorkspaceWrite(a.ws, a.ws+"/planted"), a.ws)
	_, err := a.run(t, &job{policy: &p, args: sh(`echo x >planted/x`)})
	var no *sandbox.UnsupportedError
	if !errors.As(err, &no) {
		t.Errorf("a planted root: %v", err)
	}
	q := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/planted/canary", sandbox.LevelRead))
	if _, err = a.run(t, &job{policy: &q, args: sh(`:`)}); !errors.As(err, &no) {
		t.Errorf("a path that is read-only behind a planted link: %v", err)
	}
}

// TestDeniedLinks: a denied path that is a symbolic link, or lies behind one, hides what it leads to, and
// the link stays for later runs.
func TestDeniedLinks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, c := range []struct{ name, denied string }{{"link", "secret"}, {"behind", "way/canary"}} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			must(t, os.Symlink("../out/canary", a.ws+"/secret"))
			must(t, os.Symlink(a.out, a.ws+"/way"))
			p := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/"+c.denied, sandbox.LevelDeny))
			link, _, _ := strings.Cut(c.denied, "/")
			res := mustRun(t, a, &job{policy: &p, args: sh(
				`cat "$1" "$2"; rm -f "$3"; mv "$3" x; ln -sfn /etc "$3"; true`,
				a.ws+"/"+c.denied, a.out+"/canary", link)})
			if res.out != "" {
				t.Errorf("read %q", res.out)
			}
			if _, err := os.Readlink(a.ws + "/" + link); err != nil {
				t.Error(err)
			}
			if got, _ := os.Readlink(a.ws + "/" + link); got == "/etc" {
				t.Error("the link was replaced")
			}
		})
	}
}

// TestSwappedBeforeLaunch replaces things between the look and the launch.
func TestSwappedBeforeLaunch(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name string
		swap func(a *arena) error
	}{
		{"root by a link", func(a *arena) error {
			return errors.Join(os.Rename(a.ws, a.base+"/old"), os.Symlink(a.out, a.ws))
		}},
		{"root by a directory", func(a *arena) error {
			return errors.Join(os.Rename(a.ws, a.base+"/old"), os.Rename(a.out, a.ws))
		}},
		{"protected name by a link", func(a *arena) error {
			return errors.Join(os.Rename(a.ws+"/.git", a.ws+"/old"), os.Symlink(a.out, a.ws+"/.git"))
		}},
		{"protected name by a directory", func(a *arena) error {
			return errors.Join(os.Rename(a.ws+"/.git", a.ws+"/old"), os.Mkdir(a.ws+"/.git", 0o755))
		}},
		{"parent by a link", func(a *arena) error {
			return errors.Join(os.Rename(a.ws+"/dir", a.ws+"/old"), os.Symlink(a.out+"/dir", a.ws+"/dir"))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			must(t, os.Mkdir(a.ws+"/dir/kept", 0o755))
			p := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/dir/kept", sandbox.LevelRead))
			before := snapshot(t, a.out+"/dir")
			j := &job{policy: &p, args: sh(`echo evil >dir/evil; echo evil >canary`)}
			j.change = func(*plan.Plan) { must(t, test.swap(a)) }
			_, err := a.run(t, j)
			var root *executor.RootError
			var dir *executor.DirError
			if !errors.As(err, &root) && !errors.As(err, &dir) {
				t.Fatalf("%T %v", err, err)
			}
			if root != nil && !strings.Contains(root.Error(), "replaced") {
				t.Errorf("%v", root)
			}
			out := a.out
			if _, err := os.Lstat(out); err != nil {
				out = a.ws
			}
			if after := snapshot(t, out+"/dir"); after != before {
				t.Errorf("changed:\n%s\nbefore:\n%s", after, before)
			}
			if b, err := os.ReadFile(out + "/canary"); err != nil || string(b) != "canary" {
				t.Errorf("%q %v", b, err)
			}
		})
	}
}
