// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"os"
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

// TestProtectedLinks refuses protected names that lead elsewhere, because the
// command could lead them elsewhere again.
func TestProtectedLinks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, name := range []string{".git", ".codex"} {
		t.Run(name, func(t *testing.T) {
			a := newArena(t)
			must(t, os.RemoveAll(a.ws+"/.git"))
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
	q := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/planted/canary", sandbox.LevelDeny))
	if _, err = a.run(t, &job{policy: &q, args: sh(`:`)}); !errors.As(err, &no) {
		t.Errorf("a denied path behind a planted link: %v", err)
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
