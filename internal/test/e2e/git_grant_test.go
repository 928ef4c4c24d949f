// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// gitRepo makes a repository with a history in a directory of its own.
func gitRepo(t *testing.T) string {
	t.Helper()
	testenv.NeedProgram(t, "git")
	ws := filepath.Join(t.TempDir(), "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	outside := newRunner(t, sandbox.FullAccess())
	made := gitRun(t, outside, ws, `git init -q -b master . && git config user.email a@example.org && git config user.name a &&
		echo text >file && git add file && git commit -qm first`)
	if made.ExitCode != 0 {
		t.Fatalf("%s", made.Output)
	}
	return ws
}

// gitWork is what people do with git; each line goes on where the one before ended.
var gitWork = []struct{ name, script string }{
	{"add", "echo more >>file; git add file"},
	{"commit", "git commit -qm second"},
	{"branch", "git branch side"},
	{"checkout", "git checkout -q side && echo side >side && git add side && git commit -qm side && git checkout -q master"},
	{"switch to a new branch", "git switch -q -c other && git switch -q master"},
	{"merge", "git merge -q --no-edit side"},
	{"merge with a commit", "git switch -q other && echo o >o && git add o && git commit -qm o && git switch -q master && git merge -q --no-edit other"},
	{"rebase", "git switch -q -c topic HEAD~1 && echo t >t && git add t && git commit -qm topic && git rebase -q master && git switch -q master"},
	{"stash", "echo dirty >>file && git stash -q && git stash pop -q && git checkout -q file"},
	{"tag", "git tag v1 && git tag -a v2 -m two"},
	{"reset", "git reset -q --hard HEAD"},
	{"cherry-pick", "git cherry-pick topic >/dev/null"},
	{"amend", "git commit -q --amend -m amended"},
	{"worktree add", "git worktree add -q wt && (cd wt && echo w >w && git add w && git commit -qm w)"},
	{"fetch from a directory", "git clone -q . clone && git -C clone -c user.name=a -c user.email=a commit -q --allow-empty -m c && git fetch -q ./clone && git log -1 FETCH_HEAD >/dev/null"},
	{"worktree remove", "git worktree add -q wt3 && git worktree remove wt3"},
	{"revert", "git revert --no-edit HEAD >/dev/null"},
	{"rebase with a list of steps", "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/reword/' git -c core.editor=true rebase -q -i HEAD~2"},
	{"rebase with perl as the editor", "GIT_SEQUENCE_EDITOR='perl -pi -e s/^pick/edit/' git rebase -q -i HEAD~1 2>/dev/null && git rebase --continue 2>/dev/null"},
	{"rebase with an editor that makes copies", `GIT_SEQUENCE_EDITOR='sh -c "cp \$0 \$0~; cp \$0 \$0.bak; sed s/pick/drop/ \$0 >\$0.tmp; mv \$0.tmp \$0"' git rebase -q -i HEAD~1 && git reset -q --hard ORIG_HEAD`},
	{"rebase with labels and merges", "git -c sequence.editor=true rebase -q -i -r --root >/dev/null"},
	{"a conflict and --continue", `git switch -q -c left && echo l >file && git commit -qam left && git switch -q master && echo r >file && git commit -qam right &&
		git switch -q left && ! git rebase -q master 2>/dev/null && git add file && GIT_EDITOR=true git rebase --continue >/dev/null 2>&1 && git switch -q master`},
	{"a conflict of a cherry-pick", `git switch -q -c pick master~1 && echo p >file && git commit -qam p && ! git cherry-pick master >/dev/null 2>&1 &&
		git add file && git -c core.editor=true cherry-pick --continue >/dev/null || git cherry-pick --skip; git switch -q master`},
	{"a conflict of a merge", "! git merge -q pick >/dev/null 2>&1 && git merge --abort"},
	{"rebase --apply that stops", "git switch -q -c stops master~1 && echo z >file && git commit -qam z && ! git rebase -q --apply master >/dev/null 2>&1 && git rebase --abort && git switch -q master"},
	{"autosquash and autostash", "echo q >q && git add q && git commit -qm q && echo q2 >q && git commit -qam 'fixup! q' && echo dirty >>file && git -c sequence.editor=true rebase -q -i --autosquash --autostash HEAD~3 && git checkout -q file"},
	{"am", "git format-patch -q -1 -o patches && git reset -q --hard HEAD~1 && git am -q patches/*.patch"},
	{"stash with a pathspec", "echo 1 >>q && echo 2 >>file && git stash push -q -- q && git stash pop -q && git checkout -q q file"},
	{"bisect", "git bisect start HEAD HEAD~2 >/dev/null && git bisect good >/dev/null; git bisect log >/dev/null && git bisect reset 2>/dev/null"},
	{"notes", "git notes add -m n && git notes append -m m && git notes list >/dev/null"},
	{"rerere", "git -c rerere.enabled=true merge -q pick >/dev/null 2>&1; git -c rerere.enabled=true rerere; git reset -q --hard"},
	{"split index", "git update-index --split-index && git status >/dev/null && git update-index --no-split-index"},
	{"partial commit", "echo c >>file && git commit -qm only file"},
	{"subtree-like tools", "GIT_INDEX_FILE=.git/index.tool git read-tree HEAD && rm .git/index.tool"},
	{"worktree with a rebase", "git worktree add -q wt5 && (cd wt5 && echo 5 >5 && git add 5 && git commit -qm 5 && git rebase -q --root && git switch -q -c six) && git worktree move wt5 wt6 && git worktree lock wt6 && git worktree unlock wt6"},
	{"replace and fast-export", "git fast-export --all >/dev/null && git -c core.editor=true replace --edit --raw HEAD >/dev/null 2>&1; true"},
	{"maintenance", "git maintenance run --task=commit-graph --task=gc -q; git pack-refs --all"},
	{"gc", "git gc -q"},
	{"delete a branch", "git branch -q -D side"},
	{"log and status", "git log --oneline >/dev/null && git status --short >/dev/null && git fsck --no-dangling"},
}

// TestGitGrant does all of it in one repository, with the grant and without.
func TestGitGrant(t *testing.T) {
	testenv.RunAsOrdinary(t)
	ws := gitRepo(t)
	granted := newRunner(t, sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"}))
	for _, w := range gitWork {
		t.Run(w.name, func(t *testing.T) {
			for _, tool := range []string{"sed", "perl"} {
				if strings.Contains(w.script, tool+" ") {
					testenv.NeedProgram(t, tool)
				}
			}
			if res := gitRun(t, granted, ws, w.script); res.ExitCode != 0 || len(res.Quarantined) > 0 {
				t.Errorf("exit code %d, quarantined %v\n%s", res.ExitCode, res.Quarantined, res.Output)
			}
		})
	}
	t.Run("a linked work tree", func(t *testing.T) {
		wt := filepath.Join(ws, "wt")
		if res := gitRun(t, granted, wt,
			"echo x >x && git add x && git commit -qm x && git switch -q -c y"); res.ExitCode != 0 {
			t.Errorf("exit code %d\n%s", res.ExitCode, res.Output)
		}
	})
	t.Run("a directory of the work tree", func(t *testing.T) {
		below := filepath.Join(ws, "below")
		if err := os.Mkdir(below, 0o755); err != nil {
			t.Fatal(err)
		}
		if res := gitRun(t, granted, below,
			"echo x >x && git add x && git commit -qm below"); res.ExitCode != 0 {
			t.Errorf("exit code %d\n%s", res.ExitCode, res.Output)
		}
	})
	t.Run("not without the grant", func(t *testing.T) {
		r := newRunner(t, sandbox.WorkspaceWrite("."))
		res := gitRun(t, r, ws, "git add -A")
		if res.ExitCode == 0 {
			t.Error("it worked")
		}
		if ds := res.Denials(); len(ds) != 1 || ds[0].Grant != "--grant git" ||
			ds[0].Path != filepath.Join(ws, ".git", "index.lock") {
			t.Errorf("denials %v", ds)
		}
	})
}

// TestGitGrantSubmodule: the grant is for the git directories of submodules as for the main one, from the top
// and for nested ones; their configuration and hooks stay closed. Without it, it is what is suggested.
func TestGitGrantSubmodule(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "sed") // of git submodule, a script
	ws := gitRepo(t)
	outside := newRunner(t, sandbox.FullAccess())
	if made := gitRun(t, outside, ws, `set -e
		for d in a b; do git clone -q . ../$d; done
		s="git -c protocol.file.allow=always submodule -q"
		cd ../a; $s add "${PWD%a}b" inner; git -c user.name=a -c user.email=a commit -qm inner; cd ../ws
		$s add "${PWD%ws}a" libs/sub; $s update --init --recursive; git commit -qm sub`); made.ExitCode != 0 {
		t.Fatalf("%s", made.Output)
	}
	const work = "echo a >a && git add a && git -c user.name=a -c user.email=a commit -qm a"
	r := newRunner(t, sandbox.WorkspaceWrite("."))
	res := gitRun(t, r, ws, "cd libs/sub && "+work)
	if ds := res.Denials(); res.ExitCode == 0 || len(ds) != 1 || ds[0].Grant != "--grant git" {
		t.Errorf("exit code %d, denials %v", res.ExitCode, ds)
	}
	granted := newRunner(t, sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"}))
	for _, dir := range []string{"libs/sub", "libs/sub/inner"} {
		if res := gitRun(t, granted, ws, "cd "+dir+" && "+work); res.ExitCode != 0 || len(res.Quarantined) > 0 {
			t.Errorf("%s: exit code %d, quarantined %v\n%s", dir, res.ExitCode, res.Quarantined, res.Output)
		}
	}
	const attack = `for d in .git/modules/libs/sub .git/modules/libs/sub/modules/inner; do
		for f in config hooks/pre-commit info/attributes; do echo x >>$d/$f && echo $d/$f; done
		mv $d x && echo moved $d; done 2>/dev/null; mkdir .git/modules/new 2>/dev/null && echo new; true`
	if res := gitRun(t, granted, ws, attack); strings.TrimSpace(res.Output.String()) != "" {
		t.Errorf("changed: %s", res.Output)
	}
}

// refusedInit: a repository is refused while the command asks for it, and told.
func refusedInit(t *testing.T, policy sandbox.Policy, ws string) {
	t.Helper()
	res := gitRun(t, newRunner(t, policy), ws, "git init -q")
	at := filepath.Join(ws, ".git")
	if ds := res.Denials(); res.ExitCode == 0 || len(ds) != 1 || ds[0].Path != at || ds[0].Errno != "EROFS" ||
		ds[0].Grant != "--grant git" || ds[0].Source != sandbox.Notified {
		t.Errorf("exit %d, denials %v", res.ExitCode, ds)
	}
	if _, err := os.Lstat(at); err == nil || len(res.Quarantined) > 0 {
		t.Errorf("%s is there: %v; quarantined %v", at, err == nil, res.Quarantined)
	}
}

// TestGitInit: a repository that is created is refused, and moved away where
// nobody sees it being made, unless the grant permits it.
func TestGitInit(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "git")
	for _, granted := range []bool{false, true} {
		ws := t.TempDir()
		policy := sandbox.WorkspaceWrite(".")
		if granted {
			policy = policy.With(sandbox.Grant{Name: "git"})
		}
		if !granted {
			refusedInit(t, policy, ws)
		}
		c := gitCmd(ws, "git init -q; mkdir -p .git/kept; echo x >.git/kept/x; true")
		c.NoObserver = !granted
		res := run(t, newRunner(t, policy), c)
		_, err := os.Stat(filepath.Join(ws, ".git"))
		if made := err == nil; made != granted {
			t.Errorf("with the grant %v a .git was made: %v", granted, made)
		}
		if granted {
			if len(res.Quarantined) > 0 {
				t.Errorf("%v", res.Quarantined)
			}
			continue
		}
		if len(res.Quarantined) == 0 || res.Quarantined[0].Path != filepath.Join(ws, ".git") ||
			res.Quarantined[0].Grant != "--grant git" {
			t.Fatalf("%+v", res.Quarantined)
		}
		if st, err := os.Stat(res.Quarantined[0].MovedTo); err != nil || !st.IsDir() {
			t.Errorf("moved to %q: %v", res.Quarantined[0].MovedTo, err)
		}
	}
}

// TestGitConfigOpened: a configuration that an entry opens stays where it is, and so
// does one that somebody changes outside meanwhile, which ends the run.
func TestGitConfigOpened(t *testing.T) {
	testenv.RunAsOrdinary(t)
	ws := gitRepo(t)
	config := filepath.Join(ws, ".git", "config")
	granted := sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"})
	opened := newRunner(t, granted.WithEntries(sandbox.PathEntry(config, sandbox.LevelWrite)))
	if res := gitRun(t, opened, ws, "git remote add x ../x && git remote"); res.ExitCode != 0 ||
		res.Stdout.String() != "x\n" || len(res.Quarantined) > 0 {
		t.Errorf("opened: exit code %d, quarantined %v\n%s", res.ExitCode, res.Quarantined, res.Output)
	}
	c := sh("cat >/dev/null") // until its input ends
	c.Dir = ws
	r, w := io.Pipe()
	c.Stdin = r
	started := make(chan struct{}, 8)
	shut := &sallyport.Runner{Policy: granted, Events: event.SinkFunc(func(e event.Event) {
		if _, ok := e.Body.(event.Started); ok {
			started <- struct{}{}
		}
	})}
	defer shut.Close()
	var outside sync.WaitGroup
	outside.Go(func() {
		<-started
		if res := gitRun(t, newRunner(t, sandbox.FullAccess()), ws,
			"git config a.outside yes"); res.ExitCode != 0 {
			t.Errorf("outside: exit code %d\n%s", res.ExitCode, res.Output)
		}
		w.Close()
	})
	res, err := shut.Run(t.Context(), c)
	outside.Wait()
	if err == nil || !strings.Contains(err.Error(), "replaced from outside") || res == nil ||
		res.End != sallyport.EndFailed || len(res.Quarantined) > 0 {
		t.Errorf("changed outside: %v, %+v", err, res)
	}
	if b, err := os.ReadFile(config); !strings.Contains(string(b), "outside = yes") ||
		!strings.Contains(string(b), "remote") {
		t.Errorf("the configuration is %q, %v", b, err)
	}
}

// TestGitConfigRefused: what git says when it cannot write its configuration comes
// with what would allow it.
func TestGitConfigRefused(t *testing.T) {
	testenv.RunAsOrdinary(t)
	ws := gitRepo(t)
	r := newRunner(t, sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"}))
	for _, script := range []string{"git config a.b c", "git remote add x ../x",
		"git branch --set-upstream-to=master topic 2>&1 || git branch topic; git branch --set-upstream-to=master topic"} {
		res := gitRun(t, r, ws, script)
		found := false
		for _, d := range res.Denials() {
			found = found || strings.HasSuffix(d.Path, ".git/config") && strings.HasPrefix(d.Grant, "--rw ")
		}
		if !found {
			t.Errorf("%s: denials %v\n%s", script, res.Denials(), res.Output)
		}
	}
}
