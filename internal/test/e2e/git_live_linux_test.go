// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// bareAtTop makes a bare repository of the working directory.
const bareAtTop = `mkdir objects refs; printf '[core]\nbare = false\nworktree = .\n' >config; echo 'ref: refs/heads/m' >HEAD`

// livePlants are what a command plants in a git directory, and the name that must vanish while it
// still runs.
var livePlants = []struct{ name, script, gone string }{
	{"a command in a list of steps", "mkdir .git/rebase-merge; echo 'exec evil' >.git/rebase-merge/git-rebase-todo", ".git/rebase-merge"},
	{"a command added to a list", "mkdir .git/rebase-merge; echo break >.git/rebase-merge/git-rebase-todo; git status >/dev/null; echo 'x evil' >>.git/rebase-merge/git-rebase-todo", ".git/rebase-merge"},
	{"a number that is none", "mkdir .git/rebase-merge; echo '`evil`' >.git/rebase-merge/end", ".git/rebase-merge/end"},
	{"a number of am", "mkdir .git/rebase-apply; echo '1;evil' >.git/rebase-apply/last", ".git/rebase-apply/last"},
	{"by a rename", "mkdir .git/rebase-merge; echo /x/evil >s; mv s .git/rebase-merge/strategy", ".git/rebase-merge/strategy"},
	{"with its directory", "mkdir m; echo /x/evil >m/strategy; mv m .git/rebase-merge", ".git/rebase-merge/strategy"},
	{"by another name of the file", "mkdir .git/sequencer; echo 12345678 >.git/objects/s; ln .git/objects/s .git/sequencer/head; echo evil >.git/objects/s", ".git/sequencer/head"},
	{"by a name made afterwards", "mkdir .git/sequencer; echo 12345678 >.git/sequencer/head; git status >/dev/null; ln .git/sequencer/head .git/objects/s; echo evil >.git/objects/s", ".git/sequencer/head"},
	{"a name that is not git's", "mkdir -p .git/gitweb; echo evil >.git/gitweb/x", ".git/gitweb"},
	{"a directory in place of a file", "rm -f .git/FETCH_HEAD; mkdir .git/FETCH_HEAD", ".git/FETCH_HEAD"},
	{"an author as a script", "mkdir .git/rebase-merge; echo 'GIT_AUTHOR_NAME=$(evil)' >.git/rebase-merge/author-script", ".git/rebase-merge/author-script"},
	{"in a new work tree", "git worktree add -q wt 2>/dev/null; echo /evil >.git/worktrees/wt/commondir", ".git/worktrees/wt"},
	{"a rebase of a new work tree", "git worktree add -q wt 2>/dev/null; mkdir .git/worktrees/wt/rebase-merge; echo 'exec e' >.git/worktrees/wt/rebase-merge/git-rebase-todo", ".git/worktrees/wt/rebase-merge"},
	{"a bare repository instead of .git", "rm .git/HEAD; sleep 0.05; " + bareAtTop, "HEAD"}, // git takes it then
	{"a bare repository before .git is none", bareAtTop + "; mv .git/refs r", "HEAD"},
	{"a submodule of its own", "git init -q n; git -C n -c user.name=a -c user.email=a commit -q --allow-empty -m x; git add n 2>/dev/null", "n/.git"},
}

// TestGitAtOnce: what git outside would obey is gone while the command that has made it runs.
func TestGitAtOnce(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, p := range livePlants {
		t.Run(p.name, func(t *testing.T) {
			ws := gitRepo(t)
			granted := newRunner(t, sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"}))
			vanishes(t, granted, ws, p.script, p.gone)
		})
	}
	t.Run("a bare repository at the top", func(t *testing.T) {
		testenv.NeedProgram(t, "git")
		vanishes(t, newRunner(t, sandbox.WorkspaceWrite(".")), t.TempDir(), bareAtTop, "HEAD")
	})
	t.Run("a bare repository beside a .git that is none since the run before", func(t *testing.T) {
		ws := gitRepo(t)
		if err := os.Remove(filepath.Join(ws, ".git", "HEAD")); err != nil {
			t.Fatal(err)
		}
		r := newRunner(t, sandbox.WorkspaceWrite("."))
		if res := run(t, r, gitCmd(ws, "true")); len(res.Quarantined) != 0 {
			t.Errorf("nothing was made, and %v quarantined", res.Quarantined)
		}
		vanishes(t, r, ws, bareAtTop, "HEAD")
	})
}

// vanishes runs a script that makes a path, and waits inside until it is gone.
func vanishes(t *testing.T, r *sallyport.Runner, ws, script, gone string) {
	t.Helper()
	c := gitCmd(ws, script+"; while [ -e "+gone+" ]; do sleep 0.01; done")
	c.Timeout = 20 * time.Second
	res := run(t, r, c)
	moved := func(q executor.Quarantined) bool { return q.Path == filepath.Join(ws, gone) && q.MovedTo != "" }
	if res.ExitCode != 0 || !slices.ContainsFunc(res.Quarantined, moved) {
		t.Errorf("exit code %d, quarantined %v\n%s", res.ExitCode, res.Quarantined, res.Output)
	}
}

// TestGitTemplates: templates of the user's git in the workspace are closed like hooks.
func TestGitTemplates(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "git")
	for _, by := range []string{"variable", "configuration"} {
		for _, present := range []bool{false, true} {
			ws, home := t.TempDir(), t.TempDir()
			tpl := filepath.Join(ws, "tpl")
			t.Setenv("GIT_TEMPLATE_DIR", "")
			t.Setenv("HOME", home)
			if by == "variable" {
				t.Setenv("GIT_TEMPLATE_DIR", tpl)
			} else if err := os.WriteFile(filepath.Join(home, ".gitconfig"),
				[]byte("[init]\ntemplateDir = "+tpl+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if present {
				if err := os.MkdirAll(filepath.Join(tpl, "hooks"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			res := gitRun(t, newRunner(t, sandbox.WorkspaceWrite(".")), ws,
				"mkdir -p tpl/hooks; echo x >tpl/hooks/post-checkout")
			if _, err := os.Lstat(filepath.Join(tpl, "hooks", "post-checkout")); err == nil ||
				res.ExitCode == 0 {
				t.Errorf("by %s, present %v: a hook was made", by, present)
			}
		}
	}
}

// TestClosedRepository: a repository below a closed directory of another user in the workspace of
// root needs no protection, because the command cannot get there; one that is open for others
// is protected.
func TestClosedRepository(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedRoot(t) // others do not find what is in closed directories
	const other = 65534 // any user that is not root
	ws := t.TempDir()
	if err := os.Chmod(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"closed": 0o700, "open": 0o755} {
		dir := filepath.Join(ws, name)
		git := filepath.Join(dir, "repo", ".git")
		for _, d := range []string{"hooks", "objects", "refs"} {
			if err := os.MkdirAll(filepath.Join(git, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, other, other); err != nil {
			t.Fatal(err)
		}
	}
	r := newRunner(t, sandbox.WorkspaceWrite())
	c := sallyport.Script("ls closed/repo 2>/dev/null && echo reached; touch open/repo/.git/hooks/x 2>/dev/null && echo written; true")
	c.Dir = ws
	res, err := r.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if out := res.Output.Bytes(); res.ExitCode != 0 || len(out) > 0 {
		t.Errorf("exit code %d, output %q", res.ExitCode, out)
	}
}

// TestVanishing: repositories that another program makes and removes in the workspace all the
// while do not stop a run.
func TestVanishing(t *testing.T) {
	testenv.NeedUserNS(t)
	ws := t.TempDir()
	stop := make(chan struct{})
	var others sync.WaitGroup
	for i := range 2 {
		others.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				top := filepath.Join(ws, "a"+strconv.Itoa(i))
				git := filepath.Join(top, "work", ".git")
				for _, dir := range []string{"hooks", "objects", "refs"} {
					_ = os.MkdirAll(filepath.Join(git, dir), 0o755)
				}
				_ = os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
				_ = os.WriteFile(filepath.Join(git, "config"), []byte("[core]\n\tbare = false\n"), 0o644)
				_ = os.RemoveAll(top)
			}
		})
	}
	r := newRunner(t, sandbox.WorkspaceWrite())
	for range 50 {
		c := sallyport.Command("true")
		c.Dir = ws
		if _, err := r.Run(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	others.Wait()
}
