// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// linkAttacks plant something in a git directory through which git outside writes to
// ../mark. All need the grant git.
func linkAttacks() []gitAttack {
	const commit = "echo more >>file; git commit -qam x"
	to := func(name string) string { return `rm -rf .git/` + name + `; ln -s "$WS/../mark" .git/` + name }
	return []gitAttack{
		{name: "a link for the message of a commit", attack: to("COMMIT_EDITMSG"), later: commit},
		{name: "a link for the message of a merge", prepare: "git branch side; " + commit + "; git checkout -q side; git commit -q --allow-empty -m side", attack: to("MERGE_MSG"), later: "git merge --no-commit --no-ff master"},
		{name: "a link for a reflog", attack: to("logs/HEAD"), later: commit},
		{name: "a link for FETCH_HEAD", attack: to("FETCH_HEAD"), later: "git fetch -q . master"},
		{name: "a link for the index", attack: to("index"), later: "git add file"},
		{name: "a link for a directory of refs", attack: `rm -rf .git/refs/tags; ln -s "$WS/.." .git/refs/tags`, later: "git tag mark"},
		{name: "a link for a graph of commits", attack: to("objects/info/commit-graph"), later: "git commit-graph write --reachable"},
		{name: "a link in a directory that is moved", attack: `mkdir d; ln -s "$WS/../mark" d/HEAD; rm -rf .git/logs; mv d .git/logs`, later: commit},
		{name: "a link that is moved", attack: `ln -s "$WS/../mark" l; mv -f l .git/COMMIT_EDITMSG`, later: commit},
		{
			name: "a link for a list of steps", prepare: rebasing,
			attack: `cp .git/rebase-merge/done l; rm .git/rebase-merge/done; ln -s "$WS/../mark" .git/rebase-merge/done`, later: "git rebase --continue",
		},
		{name: "a link in a linked work tree", prepare: "git worktree add -q wt", attack: to("worktrees/wt/COMMIT_EDITMSG"), later: "cd wt; git commit -q --allow-empty -m x"},
	}
}

// orderAttacks change a file in a git directory from which git takes a program or an
// option.
func orderAttacks() []gitAttack {
	const (
		evilStrategy = "mkdir -p git-merge-x; cp evil git-merge-x/evil; "
		conflict     = "git checkout -q -b side; echo s >file; git commit -qam s; echo t >t; git add t; git commit -qm t; git checkout -q master; echo m >file; git commit -qam m; "
		resolve      = "echo r >file; git add file; export GIT_EDITOR=true; "
	)
	return []gitAttack{
		{name: "rebase-merge/strategy", prepare: rebasing, attack: evilStrategy + "printf x/evil >.git/rebase-merge/strategy", later: "git rebase --continue"},
		{
			name: "sequencer/opts", prepare: conflict + "git cherry-pick side~1 side",
			attack: evilStrategy + `printf '[options]\n\tstrategy = x/evil\n' >.git/sequencer/opts`,
			later:  resolve + "git cherry-pick --continue",
		},
		{
			name: "rebase-apply/apply-opt", prepare: conflict +
				"git format-patch -q -o ../patches master..side; git am -q ../patches/*",
			attack: `echo "'--build-fake-ancestor=$WS/../mark'" >.git/rebase-apply/apply-opt`,
			later:  "git am --skip",
		},
		{
			name:   "a name in the index",
			attack: `git update-index --add --cacheinfo 100755,$(git hash-object -w evil),Xgit/hooks/pre-commit; sed s/Xgit/.git/ .git/index >i; cp i .git/index`,
			later:  "git checkout-index -f -a; git commit -q --allow-empty -m x",
		},
		{name: "programs of git instaweb", attack: "mkdir -p .git/gitweb; cp evil .git/gitweb/lighttpd", later: "git instaweb start"},
	}
}

// rebasing has a rebase stop at its first of two steps.
const rebasing = `git branch m; git checkout -qb f; echo z >z; git add z; git commit -qm z; echo y >y; git add y; git commit -qm y; git checkout -q m; ` +
	`echo q >q; git add q; git commit -qm q; git checkout -q f; GIT_SEQUENCE_EDITOR="sed -i 1s/pick/edit/" git rebase -q -i m`

// TestGitFiles plants each attack with the grant git, with and without the observer, and
// to see that it is one, with full access.
func TestGitFiles(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "git")
	testenv.NeedProgram(t, "sed")
	for _, list := range [][]gitAttack{linkAttacks(), orderAttacks()} {
		for i, a := range list {
			if !testenv.InShort(i) {
				continue
			}
			t.Run(a.name, func(t *testing.T) {
				a.check(t, sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"}))
				a.blind = true
				a.check(t, sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"}))
				a.works(t)
			})
		}
	}
}
