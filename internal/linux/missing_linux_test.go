// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// missingAttempts try to get something to a protected name that does not exist.
// Each ends with 0 when it has.
var missingAttempts = []struct{ name, script string }{
	{"make", "mkdir .codex"},
	{"write", "echo x >.codex"},
	{"write in it", "echo x >.codex/config"},
	{"open it", "chmod 755 .codex && echo x >.codex/config"},
	{"rename over it", "mkdir new && mv -T new .codex"},
	{"remove it", "rmdir .codex"},
	{"move it", "mv .codex old"},
	{"link", "ln -sfn dir .codex"},
	{"on the way", "mkdir -p .codex/deep"},
}

// TestMissingNames: what stands for a missing name cannot be changed where there
// are mounts, and is gone afterwards.
func TestMissingNames(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, level := range []string{plan.LevelNative, plan.LevelBwrap} {
		t.Run(level, func(t *testing.T) {
			a := newArena(t)
			if level == plan.LevelBwrap {
				a = bwrapArena(t)
			}
			for _, try := range missingAttempts {
				t.Run(try.name, func(t *testing.T) {
					if res := mustRun(t, a, &job{args: sh(try.script)}); res.code == 0 {
						t.Errorf("%q succeeded", try.script)
					}
				})
			}
			must(t, a.host.Close())
			for _, n := range sandbox.ProtectedNames() {
				if _, err := os.Lstat(a.ws + "/" + n); (err == nil) != (n == ".git") {
					t.Errorf("%s afterwards: %v", n, err)
				}
			}
		})
	}
	t.Run("without the mount", func(t *testing.T) {
		a := newArena(t)
		j := &job{args: sh("chmod 755 .codex && echo x >.codex/config"), change: func(p *plan.Plan) { dropAt("WS/.codex")(a, p) }}
		if res := mustRun(t, a, j); res.code != 0 {
			t.Errorf("%+v", res)
		}
	})
}

// TestPins: a directory that holds a denied or protected path stays where it is, so
// that the next command finds the same rules at the same places.
func TestPins(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tree := func() (*arena, *sandbox.Policy) {
		a := newArena(t)
		must(t, os.MkdirAll(a.ws+"/top/mid/deny", 0o755))
		write(t, a.ws+"/top/mid/deny/file", "secret")
		p := a.policy().WithEntries(sandbox.PathEntry(a.ws+"/top/mid/deny", sandbox.LevelDeny))
		return a, &p
	}
	const next = "cat moved/mid/deny/file || cat top/moved/deny/file"
	for _, move := range []string{"mv top moved", "mv top/mid top/moved"} {
		t.Run(move, func(t *testing.T) {
			a, p := tree()
			if res := mustRun(t, a, &job{policy: p, args: sh(move)}); res.code == 0 {
				t.Error("it was moved")
			}
			if res := mustRun(t, a, &job{policy: p, args: sh(next)}); res.out != "" {
				t.Errorf("the next command reads %q", res.out)
			}
		})
		t.Run("without pins: "+move, func(t *testing.T) {
			a, p := tree()
			without := func(p *plan.Plan) { dropAt("WS/top", "WS/top/mid")(a, p) }
			if res := mustRun(t, a, &job{policy: p, args: sh(move), change: without}); res.code != 0 {
				t.Fatalf("%+v", res)
			}
			if res := mustRun(t, a, &job{policy: p, args: sh(next)}); res.out != "secret" {
				t.Errorf("the next command reads %q", res.out)
			}
		})
	}
	t.Run("a root above it, in another root", func(t *testing.T) {
		a, p := tree()
		inner := p.WithEntries(sandbox.PathEntry(a.ws+"/top", sandbox.LevelWrite))
		if res := mustRun(t, a, &job{policy: &inner, args: sh("mv top moved")}); res.code == 0 {
			t.Error("it was moved")
		}
	})
	t.Run("what is in it still works", func(t *testing.T) {
		a, p := tree()
		if res := mustRun(t, a, &job{policy: p, args: sh("echo x >top/mid/file && mv top/mid/file top/file && mkdir top/mid/d && mv top/mid/d top/mid/e")}); res.code != 0 {
			t.Errorf("%+v", res)
		}
	})
}

// TestPlaceholderOfAnother: where two runs with state directories of their own, as those of
// two users, work in one directory, the first removes its placeholders while the second still
// runs. What the command makes there is denied or quarantined, and nothing of it is left.
func TestPlaceholderOfAnother(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, blind := range []bool{false, true} {
		a := newArena(t)
		var first *Child
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		must(t, err)
		defer null.Close()
		first, err = a.start(a.request(&job{args: sh(`:`)}), nil, null, null, null)
		must(t, err)
		t.Setenv("XDG_STATE_HOME", a.base+"/other")
		b := &arena{host: new(Host), base: a.base, ws: a.ws, out: a.out}
		in, feed := pipe(t)
		defer in.Close()
		res := mustRun(t, b, &job{blind: blind, stdin: in, args: sh(`read x; mkdir .codex && echo won >.codex/config; echo end`), during: func(*Child) {
			_, _, _ = first.Wait()
			must(t, first.WaitAll())
			must(t, first.Close(new(executor.Exit)))
			must(t, a.host.Close())
			must(t, feed.Close())
		}})
		must(t, b.host.Close())
		if _, err := os.Lstat(a.ws + "/.codex"); !os.IsNotExist(err) || res.out != "end\n" {
			t.Errorf("without an observer: %v: it is there: %v, %+v", blind, err, res)
		}
	}
}

// TestPlaceholderOfKilled: the placeholders of a killed front end stay as long as its command
// can still run, though another run begins. Here the command runs on for long, because what
// ends it is left out.
func TestPlaceholderOfKilled(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	f := startFront(t, a, "hold-orphan", "hold")
	before, err := os.Lstat(a.ws + "/.codex")
	must(t, err)
	root, err := unix.PidfdOpen(f.root, 0)
	must(t, err)
	defer unix.Close(root)
	must(t, f.cmd.Process.Kill())
	_ = f.cmd.Wait()
	mustRun(t, a, &job{args: sh(`:`)})
	if after, err := os.Lstat(a.ws + "/.codex"); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the placeholder was removed: %v, %v", after, err)
	}
	must(t, unix.PidfdSendSignal(root, unix.SIGKILL, nil, 0))
	_, err = io.Copy(io.Discard, f.reader)
	must(t, err)
	must(t, a.host.Close())
	if _, err := os.Lstat(a.ws + "/.codex"); !os.IsNotExist(err) {
		t.Errorf("the placeholder is left: %v", err)
	}
}
