// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// mountedTwice makes an arena with a store of secrets in the home directory, all of which is
// visible a second time, and parts of it more often. It returns the paths of the second
// mounts that a policy has to close.
func mountedTwice(t *testing.T, a *arena) []string {
	t.Helper()
	home, second := a.base+"/home", a.base+"/second mount"
	must(t, os.MkdirAll(home+"/.aws", 0o755))
	write(t, home+"/.aws/credentials", "secret")
	write(t, home+"/.gitconfig", "[core]\n")
	t.Setenv("HOME", home)
	mountAt(t, "tmpfs", a.out+"/dir/volume", "tmpfs", 0, "")
	write(t, a.out+"/dir/volume/key", "key")
	mountAt(t, a.base, second, "", unix.MS_BIND, "")
	mountAt(t, a.out+"/dir", a.ws+"/shared", "", unix.MS_BIND, "")
	mountAt(t, a.out+"/dir/volume", a.base+"/volume", "", unix.MS_BIND, "")
	write(t, a.base+"/file", "")
	must(t, unix.Mount(a.out+"/dir/deep", a.base+"/file", "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(a.base+"/file", unix.MNT_DETACH) })
	mountAt(t, a.ws+"/.git", a.ws+"/again", "", unix.MS_BIND, "")
	return []string{
		second + "/out/dir", second + "/home/.aws", a.ws + "/shared", a.base + "/volume", a.base + "/file",
		second + "/ws/.git", second + "/home/.gitconfig", a.ws + "/again",
	}
}

// TestMountedTwice: what is denied or protected cannot be read or changed through another
// mount of the same directory, of one above it, or of something in it.
func TestMountedTwice(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	const try = `cd "$1"
for f in out/dir/deep "second mount/out/dir/deep" "second mount/home/.aws/credentials" ws/shared/deep volume/key file; do
	grep -q . "$f" 2>/dev/null && echo "read $f"; done
for f in ws/.git/new "second mount/ws/.git/new" ws/again/new "second mount/home/.gitconfig"; do
	(echo x >>"$f") 2>/dev/null && echo "wrote $f"; done
mkdir "second mount/ws/.codex" 2>/dev/null && echo "made .codex"
echo x >"second mount/ws/other" && echo end`
	for _, level := range []string{plan.LevelNative, plan.LevelBwrap} {
		t.Run(level, func(t *testing.T) {
			a := atLevel(t, level)
			if level == plan.LevelBwrap {
				a = bwrapArena(t)
			}
			closed := mountedTwice(t, a)
			p := a.policy().WithEntries(
				sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny),
				sandbox.PathEntry(a.base+"/second mount", sandbox.LevelWrite))
			j := &job{policy: &p, args: sh(try, a.base)}
			res, want := mustRun(t, a, j), "end"
			if level == plan.LevelBwrap {
				want = "made .codex\nend" // there is no observer
			}
			if _, err := os.Lstat(a.ws + "/.codex"); strings.TrimSpace(res.out) != want ||
				!os.IsNotExist(err) {
				t.Errorf(".codex: %v\n%s\n%s", err, res.out, res.err)
			}
			if level != plan.LevelNative {
				return
			}
			j.change = func(p *plan.Plan) { dropAt(closed...)(a, p) }
			res = mustRun(t, a, j)
			if n := strings.Count(res.out, "read ") + strings.Count(res.out, "wrote "); n != len(closed) {
				t.Errorf("without the rules for other mounts:\n%s\n%s", res.out, res.err)
			}
		})
	}
}

// TestMountedBetween: a mount that is made between two runs of one Host is known to the second.
func TestMountedBetween(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	a := newArena(t)
	p := a.policy().WithEntries(sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny))
	second := a.base + "/second"
	j := &job{policy: &p, args: sh(`cat "$1"`, second+"/deep")}
	mountAt(t, a.ws, a.base+"/other", "", unix.MS_BIND, "") // else nothing is looked for
	mustRun(t, a, j)
	mountAt(t, a.out+"/dir", second, "", unix.MS_BIND, "")
	if res := mustRun(t, a, j); res.out != "" || !strings.Contains(res.err, "ermission denied") {
		t.Errorf("%+v", res)
	}
}

// TestMountedTwiceMinimal: under a root of listed paths a store of secrets is hidden where an
// entry shows it, though its own path is not listed.
func TestMountedTwiceMinimal(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	a := newArena(t)
	mountedTwice(t, a)
	second := a.base + "/second mount/home"
	res := mustRun(t, a, &job{policy: a.minimal(sandbox.PathEntry(second, sandbox.LevelRead)),
		args: sh(`cat "$1/.gitconfig" "$1/.aws/credentials"`, second)})
	if res.out != "[core]\n" {
		t.Errorf("%+v", res)
	}
}

// TestMountedTwiceOpened: an entry of the policy for the second path takes precedence, and
// what holds the working directory or everything stays visible. The run says so.
func TestMountedTwiceOpened(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	a := newArena(t)
	mountedTwice(t, a)
	whole := a.base + "/second mount"
	second := whole + "/out/dir"
	for _, tt := range []struct {
		name, read, warning string
		policy              sandbox.Policy
	}{
		{"an entry", second + "/deep", a.out + "/dir is denied, but is also visible at " + second + ", which an entry of the policy opens",
			a.policy().WithEntries(sandbox.PathEntry(a.out+"/dir", sandbox.LevelDeny),
				sandbox.PathEntry(second, sandbox.LevelRead))},
		{"what holds the working directory", a.out + "/dir/deep", whole + " is denied, but is also visible at " + a.base + ", where the command has its working directory",
			bind(sandbox.ReadOnly(), a.ws).WithEntries(sandbox.PathEntry(whole, sandbox.LevelDeny))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var warnings []string
			res := mustRun(t, a, &job{policy: &tt.policy, args: sh(`cat "$1"`, tt.read),
				during: func(c *Child) { warnings = c.Sandbox().Warnings }})
			if res.out != "deep" || !slices.Contains(warnings, tt.warning) {
				t.Errorf("%+v, %q", res, warnings)
			}
		})
	}
}
