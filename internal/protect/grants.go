// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"strings"

	"github.com/sallyport-dev/sallyport/internal/caches"
)

// GrantGit is the name of the grant for working with git.
const GrantGit = "git"

// A NamedGrant is what a name after --grant opens, as data for help texts,
// doctor and documents. What it means in places is worked out for each command.
type NamedGrant struct {
	Name string `json:"name"`
	// Opens says what a command may do with it, Keeps what stays shut.
	Opens string `json:"opens"`
	Keeps string `json:"keeps"`
	// Commands are examples of what works with it, and only with it; may be empty.
	Commands []string `json:"commands"`
	// Refused are examples of what does not work even so, with what does; may be empty.
	Refused []string `json:"refused"`
}

// NamedGrants returns all named grants, git first, then those for caches by name.
// The slices are the caller's own.
func NamedGrants() []NamedGrant { return append([]NamedGrant{gitGrant()}, cacheGrants()...) }

// cacheGrants are for caches of toolchains that the workspace has no sign of.
func cacheGrants() []NamedGrant {
	var out []NamedGrant
	for _, name := range caches.Grants() {
		tool := strings.TrimPrefix(name, caches.GrantPrefix)
		out = append(out, NamedGrant{
			Name:     name,
			Opens:    "a private layer over the caches of " + tool + " also where the workspace has none of its files; what is written stays with the workspace",
			Keeps:    "the host's own caches",
			Commands: []string{}, Refused: []string{},
		})
	}
	return out
}

// gitGrant is the grant for working with git.
func gitGrant() NamedGrant {
	return NamedGrant{
		Name:  GrantGit,
		Opens: "history of the repositories in the workspace: objects, refs, packed-refs, logs, index, HEAD and the other state of git commands, in the main repository of a linked work tree too",
		Keeps: "config, config.worktree, hooks, info, modules, branches, remotes, commondir, gitdir, the pointers of linked work trees, included configuration and the folders that core.hooksPath names",
		Commands: []string{
			"git init", "git add", "git commit", "git branch", "git checkout", "git switch", "git merge", "git rebase",
			"git stash", "git tag", "git reset", "git cherry-pick", "git worktree add", "git fetch FOLDER", "git gc",
		},
		Refused: []string{
			"git config NAME VALUE, git remote add, git branch -m, git sparse-checkout: they write to .git/config, which --rw with its path allows on top",
			"git branch --set-upstream-to, git checkout --track, git branch -d: they say that they could not write it, and go on",
			"git submodule add: it writes to .git/modules; --rw with the path of .git, in place of the grant, allows that and everything else in it",
			"git worktree remove for a tree that an earlier command made, git worktree add outside of the workspace: run them outside of the sandbox",
		},
	}
}
