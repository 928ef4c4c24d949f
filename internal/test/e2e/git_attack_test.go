// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A gitAttack plants something in a repository from inside, so that a git command
// that somebody runs outside later runs ./evil. That leaves a mark, named in MARK,
// outside of the workspace.
type gitAttack struct {
	name    string
	prepare string // outside, before
	attack  string // inside
	later   string // outside, after
	// open says why the attack is not stopped. It must succeed then, so that
	// nobody is told of a hole that is not there.
	open string
	// harmless says why git itself runs nothing, with or without a sandbox.
	harmless string
	// blind says that the command runs without the observer.
	blind bool
}

// evilConfig is what makes git run ./evil in the repository whose configuration
// it is added to.
const evilConfig = `'[core]\n\tfsmonitor = "%s/evil"\n'`

// plant appends that to a file.
func plant(file string) string { return `printf ` + evilConfig + ` "$WS" >>` + file }

// gitAttacks need no grant: they go at what lies around a repository.
func gitAttacks() []gitAttack {
	const status = "git status"
	return []gitAttack{
		{name: "hook added", attack: "cp evil .git/hooks/pre-commit", later: "git commit -qm x --allow-empty"},
		{
			name: "hook where the directory was missing", prepare: "rm -r .git/hooks",
			attack: "mkdir .git/hooks; cp evil .git/hooks/pre-commit",
			later:  "git commit -qm x --allow-empty",
		},
		{name: "fsmonitor in config", attack: plant(".git/config"), later: status},
		{name: "fsmonitor by git config", attack: `git config core.fsmonitor "$WS/evil"`, later: status},
		{name: "commondir", attack: `git init -q other; rm -f .git/commondir; ` + plant("other/.git/config") + `; echo ../other/.git >.git/commondir`, later: status},
		{
			name: "config.worktree", prepare: "git config extensions.worktreeConfig true",
			attack: plant(".git/config.worktree"), later: status,
		},
		{
			name:   "filter by gitattributes",
			attack: `echo '* filter=x' >.gitattributes; git config filter.x.clean "$WS/evil"`,
			later:  "touch file; echo more >>file; git add file",
		},
		{
			name:    "info/attributes for a filter of the user's",
			prepare: `git config filter.x.clean "$WS/evil"`,
			attack:  `mkdir -p .git/info; echo '* filter=x' >.git/info/attributes`,
			later:   "echo more >>file; git add file",
		},
		{
			name: "configuration of a submodule", prepare: submodule,
			attack: plant(".git/modules/sub/config"), later: status,
		},
		{
			name: "pointer of a submodule", prepare: submodule,
			attack: `git init -q other; ` + plant("other/.git/config") +
				`; echo "gitdir: $WS/other/.git" >sub/.git`, later: status,
		},
		{
			name: "a submodule that was not checked out", prepare: submodule +
				"; git submodule -q deinit -f sub; rm -r .git/modules/sub",
			attack: `git init -q sub; (cd sub && git -c user.name=a -c user.email=a commit -qm x --allow-empty); ` + plant("sub/.git/config"), later: status,
		},
		{
			name: "alternates", attack: `git init -q other; echo "$WS/other/.git/objects" >.git/objects/info/alternates`,
			later: status, harmless: "alternates are data",
		},
		{
			name:    "directory of core.hooksPath",
			prepare: "git config core.hooksPath .githooks; mkdir .githooks",
			attack:  "cp evil .githooks/pre-commit", later: "git commit -qm x --allow-empty",
		},
		{
			name:    "directory of core.hooksPath that was missing",
			prepare: "git config core.hooksPath tools/githooks; mkdir tools",
			attack:  "mkdir -p tools/githooks; cp evil tools/githooks/pre-commit",
			later:   "git commit -qm x --allow-empty",
		},
		{
			name:    "directory above core.hooksPath replaced",
			prepare: "git config core.hooksPath tools/githooks; mkdir -p tools/githooks",
			attack:  "mv tools old; mkdir -p tools/githooks; cp evil tools/githooks/pre-commit",
			later:   "git commit -qm x --allow-empty",
		},
		{
			name:    "a filter's program in the work tree",
			prepare: "printf '#!/bin/sh\\ncat\\n' >clean; chmod +x clean; git config filter.x.clean ./clean; echo '* filter=x' >.gitattributes",
			attack:  "cp evil clean; cp evil new; mv -f new clean", later: "echo more >>file; git add file",
		},
		{
			name:    "included configuration",
			prepare: "git config include.path ../shared.config; touch shared.config",
			attack:  plant("shared.config"), later: status,
		},
		{
			name:    "included configuration that was missing",
			prepare: "git config include.path ../shared.config",
			attack:  plant("shared.config"), later: status,
		},
	}
}

// moreGitAttacks are about work trees and other repositories.
func moreGitAttacks() []gitAttack {
	const status = "git status"
	return []gitAttack{
		{
			name: "pointer of a linked work tree", prepare: "git worktree add -q wt",
			attack: `git init -q other; ` + plant("other/.git/config") +
				`; echo "gitdir: $WS/other/.git" >wt/.git`, later: "git -C wt status",
		},
		{
			name: "commondir of a linked work tree", prepare: "git worktree add -q wt",
			attack: `git init -q other; ` + plant("other/.git/config") +
				`; echo "$WS/other/.git" >.git/worktrees/wt/commondir`, later: "git -C wt status",
		},
		{
			name:    "config.worktree of a linked work tree",
			prepare: "git config extensions.worktreeConfig true; git worktree add -q wt",
			attack:  plant(".git/worktrees/wt/config.worktree"), later: "git -C wt status",
		},
		{name: ".git moved away and made anew", attack: "mv .git old; git init -q; " + plant(".git/config"), later: status},
		{name: ".git where there was none", prepare: "rm -r .git", attack: "git init -q; " + plant(".git/config"), later: status},
		{
			name: "the workspace as a bare repository", prepare: "rm -r .git",
			attack: `git init -q --bare other; cp -r other/HEAD other/config other/objects other/refs .; git config -f config core.bare false; git config -f config core.worktree "$WS"; ` + plant("config"),
			later:  status,
		},
		{
			name: "a nested repository", prepare: nested,
			attack: plant("a/b/.git/config"), later: "git -C a/b status",
		},
		{
			name: "a nested repository moved away and made anew", prepare: nested,
			attack: "mv a old; mkdir -p a; git init -q a/b; " + plant("a/b/.git/config"),
			later:  "git -C a/b status",
		},
		{
			name: "a repository that the command made", attack: "git init -q new; " +
				plant("new/.git/config"),
			later: "git -C new status",
			open:  "a command may make repositories in directories of its own, as git clone does; git obeys their configuration in there",
		},
		{
			name:   "a bare repository in a subdirectory",
			attack: `git init -q --bare bare; git config -f bare/config core.bare false; git config -f bare/config core.worktree "$WS/bare"; ` + plant("bare/config"),
			later:  "git -C bare status",
			open:   "as above; git's own safe.bareRepository=explicit stops it",
		},
	}
}

// grantedGitAttacks need the grant git, with which most of .git can be written.
func grantedGitAttacks() []gitAttack {
	const status = "git status"
	return []gitAttack{
		{name: "hooks replaced by a link", attack: "rm -rf .git/hooks; mv .git/hooks .git/old; mkdir h; cp evil h/pre-commit; ln -s ../h .git/hooks", later: "git commit -qm x --allow-empty"},
		{name: "configuration renamed over", attack: "cp .git/config c; " + plant("c") + "; mv -f c .git/config", later: status},
		{
			name: "a new work tree with a false commondir",
			attack: `git worktree add -q wt2; git init -q other; ` + plant("other/.git/config") +
				`; echo "$WS/other/.git" >.git/worktrees/wt2/commondir`,
			later: "git -C wt2 status",
		},
		{
			name:    "a new work tree with a configuration",
			prepare: "git config extensions.worktreeConfig true",
			attack:  "git worktree add -q wt2; " + plant(".git/worktrees/wt2/config.worktree"),
			later:   "git -C wt2 status",
		},
		{
			name:   "a link in the index to a repository that the command made",
			attack: "git init -q new; (cd new && git -c user.name=a -c user.email=a commit -qm x --allow-empty); git add new 2>/dev/null; " + plant("new/.git/config"),
			later:  status,
		},
		{
			name:   "old-style remotes and branches",
			attack: `mkdir -p .git/remotes .git/branches; echo "URL: ext::$WS/evil" >.git/remotes/x; echo "ext::$WS/evil" >.git/branches/y`,
			later:  "git fetch x; git fetch y", harmless: "git does not allow the transport",
		},
		{
			name:   "an unfinished rebase",
			attack: `echo a >>file; git commit -qam a; GIT_SEQUENCE_EDITOR="sed -i '1i exec $WS/evil'" git -c core.editor=true rebase -q -i HEAD~1 2>/dev/null; mkdir -p .git/rebase-merge; git rev-parse HEAD >.git/rebase-merge/onto; git rev-parse HEAD >.git/rebase-merge/orig-head; echo refs/heads/master >.git/rebase-merge/head-name; : >.git/rebase-merge/interactive; echo "exec $WS/evil" >.git/rebase-merge/git-rebase-todo`,
			later:  "git rebase --continue",
		},
		{
			name:    "a command more in an unfinished rebase of the user's",
			prepare: `echo a >>file; git commit -qam a; GIT_SEQUENCE_EDITOR="sed -i '1i break'" git -c core.editor=true rebase -q -i -x true HEAD~1 >/dev/null 2>&1`,
			attack:  `echo "exec $WS/evil" >>.git/rebase-merge/git-rebase-todo`,
			later:   "git rebase --continue",
		},
	}
}

const (
	submodule = `git init -q ../lib 2>/dev/null; (cd ../lib && git -c user.name=a -c user.email=a commit -qm x --allow-empty); ` +
		`git -c protocol.file.allow=always submodule --quiet add ../lib sub && git commit -qm sub`
	nested = "mkdir -p a/b; git init -q a/b"
)

// TestGitAttacks plants each attack in a sandbox and, to see that it is one, with
// full access.
func TestGitAttacks(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "git")
	for i, a := range slices.Concat(gitAttacks(), moreGitAttacks()) {
		if !testenv.InShort(i) {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			a.need(t)
			if a.open == "" {
				a.check(t, sandbox.WorkspaceWrite("."))
			}
			a.check(t, sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"}))
			a.works(t)
		})
	}
	for i, a := range grantedGitAttacks() {
		if !testenv.InShort(i) {
			continue
		}
		t.Run("granted: "+a.name, func(t *testing.T) {
			a.need(t)
			a.check(t, sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"}))
			a.works(t)
		})
	}
}

// need skips t where a program is missing. git submodule is a script that runs sed.
func (a gitAttack) need(t *testing.T) {
	t.Helper()
	if script := a.prepare + a.attack; strings.Contains(script, "sed ") ||
		strings.Contains(script, "submodule ") {
		testenv.NeedProgram(t, "sed")
	}
}

// works sees the attack succeed with full access, in a long run.
func (a gitAttack) works(t *testing.T) {
	t.Helper()
	if !testenv.IsLong() {
		return
	}
	if marked := a.perform(t, sandbox.FullAccess()); marked != (a.harmless == "") {
		t.Errorf("with full access: something ran outside: %v", marked)
	}
}

// check performs the attack under a policy.
func (a gitAttack) check(t *testing.T, p sandbox.Policy) {
	t.Helper()
	granted := len(p.Named()) > 0
	newRepo := granted && a.prepare == "rm -r .git" // with the grant a repository may be made
	if marked := a.perform(t, p); marked != (a.open != "" || newRepo) {
		t.Errorf("with grants %v: something ran outside: %v", p.Named(), marked)
	}
}

// perform reports whether anything ran outside after the attack.
func (a gitAttack) perform(t *testing.T, p sandbox.Policy) bool {
	t.Helper()
	top := t.TempDir()
	ws, mark := filepath.Join(top, "ws"), filepath.Join(top, "mark")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	evil := "#!/bin/sh\ntouch '" + mark + "'\ncat >/dev/null\n"
	if err := testenv.WriteProgram(filepath.Join(ws, "evil"), evil); err != nil {
		t.Fatal(err)
	}
	outside := func(script string) {
		r := newRunner(t, sandbox.FullAccess())
		res := gitRun(t, r, ws, script)
		t.Logf("%s: exit code %d, %s%s", script, res.ExitCode, res.Stdout.Bytes(), res.Stderr.Bytes())
	}
	outside("git init -q -b master . && git config user.email a@example.org && git config user.name a && echo text >file && git add file && git commit -qm first; " + a.prepare)
	os.Remove(mark)
	r := newRunner(t, p)
	if p.Mode() == sandbox.Full { // where removing without asking needs an approval
		r.Approver = approval.Fixed(approval.Decision{Answer: approval.Approved})
	}
	c := gitCmd(ws, a.attack)
	c.NoObserver = a.blind
	res := run(t, r, c)
	t.Logf("%s: exit code %d, %s%s", a.attack, res.ExitCode, res.Stdout.Bytes(), res.Stderr.Bytes())
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	os.Remove(mark) // what ran inside is no matter
	outside(a.later)
	_, err := os.Stat(mark)
	return err == nil
}

// gitRun runs a script in a work tree, without any configuration of this user's.
func gitRun(t *testing.T, r *sallyport.Runner, ws, script string) *sallyport.Result {
	t.Helper()
	return run(t, r, gitCmd(ws, script))
}

func gitCmd(ws, script string) *sallyport.Cmd {
	c := sh(script)
	c.Dir, c.EnvPolicy = ws, sallyport.EnvPolicy{Inherit: sallyport.InheritAll}
	c.EnvPolicy.Set = map[string]string{
		"WS": ws, "HOME": filepath.Dir(ws), "XDG_CONFIG_HOME": filepath.Dir(ws), "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_TERMINAL_PROMPT": "0",
	}
	return c
}
