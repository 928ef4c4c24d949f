// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestSuggestionsWork checks that a command that fails succeeds with the grants that are
// suggested for the path that it was denied, as the command line would give them.
func TestSuggestionsWork(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "git")
	// the kernel closes directories in it, which only ours can remove
	state, err := os.MkdirTemp("/var/tmp", "sallyport-test-")
	if err != nil {
		t.Fatal(err)
	}
	// The work directories of overlays are closed to every user.
	t.Cleanup(func() {
		if err := safefile.RemoveTreePath(state); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("XDG_STATE_HOME", state)
	for _, test := range []struct{ name, script, path, want string }{
		{"an existing file", "echo x >>$OUT/file", "out/data/file", "--rw OUT/file"},
		{"a new file", "echo x >$OUT/new", "out/data/new", "--rw OUT"},
		{"a new directory", "mkdir -p $OUT/a/b", "out/data/a/b", "--rw OUT"},
		{"the index of git", "git add file", "w/.git/index.lock", "--grant git"},
		{"git's configuration", "git config user.name b", "w/.git/config.lock", "--grant git --rw W/.git/config"},
		{"a nested repository", "cd sub && git add file", "w/sub/.git/index.lock", "--grant git"},
		{"a hook that is there", "echo x >>.git/hooks/old", "w/.git/hooks/old", "wider: --rw W/.git/hooks/old"},
		{"npm's cache", "echo x >$HOME/.npm/_cacache/new", "home/.npm/_cacache/new", "--grant cache:npm"},
		{"pip's cache, which is not there", "echo x >${PIP_CACHE_DIR:-$HOME/.cache/pip}/new", "home/.cache/pip/new", "--grant cache:pip"},
	} {
		t.Run(test.name, func(t *testing.T) {
			base := suggestBase(t)
			env := []string{"PATH=/usr/bin:/bin", "HOME=" + base + "/home", "OUT=" + base + "/out/data",
				"GIT_CONFIG_NOSYSTEM=1"}
			command := func(p sandbox.Policy) *sallyport.Result {
				c := sh(test.script)
				c.Dir, c.Env, c.EnvPolicy.Set = base+"/w", env, map[string]string{"OUT": base + "/out/data"}
				return run(t, newRunner(t, p), c)
			}
			policy := sandbox.WorkspaceWrite(base + "/w")
			if res := command(policy); res.ExitCode == 0 {
				t.Fatalf("it works without a grant: %s", res.Output)
			}
			ds := []sandbox.Denial{{
				Access: sandbox.Access{Op: sandbox.Write, Path: filepath.Join(base, test.path)},
				Source: sandbox.Notified,
			}}
			r := &reach.DeniedRun{
				Policy: policy.Bind(sandbox.Places{Dir: base + "/w"}), Dir: base + "/w", Env: env,
				Local: true, Named: true, Caches: true,
			}
			r.Complete(ds)
			if ds[0].Grant == "" {
				ds[0].Grant, test.want = ds[0].Wider, strings.TrimPrefix(test.want, "wider: ")
			}
			grant := strings.ReplaceAll(strings.ReplaceAll(ds[0].Grant, base+"/out/data", "OUT"),
				base+"/w", "W")
			if grant != test.want || ds[0].Rule == "" {
				t.Fatalf("the grant is %q by %q, want %q", ds[0].Grant, ds[0].Rule, test.want)
			}
			grants, ok := sandbox.ParseGrants(ds[0].Grant)
			if !ok {
				t.Fatalf("%q", ds[0].Grant)
			}
			for _, g := range grants {
				if g.Path != "" {
					policy = policy.WithEntries(sandbox.PathEntry(g.Path, g.Level))
				} else {
					policy = policy.With(g)
				}
			}
			if res := command(policy); res.ExitCode != 0 {
				t.Errorf("with %s: exit code %d, %s", ds[0].Grant, res.ExitCode, res.Output)
			}
		})
	}
}

// suggestBase makes a home, a repository w with a nested one, and a directory outside. They
// are not below /tmp, because a command has a private one.
func suggestBase(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "sallyport-test-") // commands have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `cd "$0" && mkdir -p home/.npm/_cacache w/sub out/data && echo x >out/data/file && cd w &&
		git init -q && git init -q sub && echo x >file && echo x >sub/file && mkdir -p .git/hooks && echo x >.git/hooks/old`, base)
	cmd.Env = append(testenv.Environ(), "HOME="+base+"/home", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return base
}
