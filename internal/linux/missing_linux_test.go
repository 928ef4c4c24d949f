// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"testing"

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
	t.Run("what is in it still works", func(t *testing.T) {
		a, p := tree()
		if res := mustRun(t, a, &job{policy: p, args: sh("echo x >top/mid/file && mv top/mid/file top/file && mkdir top/mid/d && mv top/mid/d top/mid/e")}); res.code != 0 {
			t.Errorf("%+v", res)
		}
	})
}
