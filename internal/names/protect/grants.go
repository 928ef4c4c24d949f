// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// GrantGit is the name of the grant for working with git.
const GrantGit = "git"

// A NamedGrant is what a name after --grant opens, as data for help texts, doctor and
// documents. What it means in paths is worked out for each command.
type NamedGrant struct {
	Name string `json:"name"`
	// Opens says what a command may do with it, Keeps what stays closed.
	Opens string `json:"opens"`
	Keeps string `json:"keeps"`
	// Commands are examples of what works with it, and only with it; may be empty.
	Commands []string `json:"commands"`
	// Refused are examples of what does not work even so, with what does; may be empty.
	Refused []string `json:"refused"`
	// Warning says why the grant is dangerous; empty where it is not.
	Warning string `json:"warning,omitempty"`
}

// NamedGrants returns all named grants: git first, then those for services and devices of this
// machine, where "loopback:PORT" stands for all ports, those for hosts of package managers, those
// for files that other programs run later, those for stores of secrets, and those for caches of
// toolchains that the workspace has no sign of, by name. The slices are the caller's own.
func NamedGrants() []NamedGrant {
	given := []NamedGrant{gitGrant()}
	for _, s := range grants.Services() {
		g := NamedGrant{Name: s.Name, Opens: s.Opens, Keeps: s.Keeps, Warning: s.Warning,
			Commands: []string{}, Refused: []string{}}
		given = append(given, g)
	}
	for _, h := range grants.HostGrants() {
		given = append(given, NamedGrant{
			Name: h.Name, Opens: h.Opens + " (" + strings.Join(h.Hosts, ", ") + ")", Keeps: h.Keeps,
			Warning:  h.Warning,
			Commands: []string{}, Refused: []string{},
		})
	}
	for _, name := range grants.ToolGrants() {
		given = append(given, toolGrant(name))
	}
	for _, name := range grants.CredentialGrants() {
		given = append(given, NamedGrant{
			Name: name, Opens: "reading " + grants.CredentialsOf(name),
			Keeps:    "the other stores of secrets in home directories",
			Commands: []string{}, Refused: []string{},
		})
	}
	for _, name := range caches.Grants() {
		tool := strings.TrimPrefix(name, caches.GrantPrefix)
		given = append(given, NamedGrant{
			Name: name,
			Opens: "writing to the caches of " + tool + " (in a private layer of the workspace," +
				" also where it has none of its files)",
			Keeps:    "the host's own caches",
			Commands: []string{}, Refused: []string{},
		})
	}
	return given
}

// toolGrant is a grant for names that other programs run later.
func toolGrant(name string) NamedGrant {
	g := NamedGrant{Name: name, Keeps: "the other protected names", Commands: []string{}, Refused: []string{}}
	home := "in a writable home directory " + strings.Join(grants.OpenedInHome(name), ", ") + ")"
	if name == grants.GrantHome {
		g.Opens = "changing files in a home directory that run later (" + home
		g.Warning = "what is written there runs outside the sandbox, for example at the next login"
		return g
	}
	of := "editors and other tools"
	if name == grants.GrantAgents {
		of = "coding agents"
	}
	g.Opens = "changing settings of " + of + " (" + strings.Join(grants.Opened(name), ", ") +
		" where they exist at the top of a writable directory; " + home
	return g
}

// Known reports whether a name is one of a grant, such as "git" or "loopback:8080".
func Known(name string) bool {
	return grants.KnownService(name) || name != grants.LoopbackPrefix+"PORT" &&
		slices.ContainsFunc(NamedGrants(), func(g NamedGrant) bool { return g.Name == name })
}

// CheckNamed refuses grants with unknown names: it is not known what they would open, and
// the command that they were asked for would fail in the middle. It refuses those for hosts, too:
// they are entries of the network policy, and open nothing here.
func CheckNamed(names []string) error {
	for _, name := range names {
		if hosts := grants.Hosts(name); hosts != nil && !grants.KnownService(name) {
			// with the host's network it opens nothing more
			return &sandbox.UnsupportedError{
				Need: fmt.Sprintf("the named grant %q", name),
				Have: "it stands for hosts in flags and settings, and a policy grants each host",
				Hint: "grant " + strings.Join(hosts, ", "),
			}
		}
		if !Known(name) {
			return &sandbox.UnsupportedError{
				Need: fmt.Sprintf("the named grant %q", name), Have: "this version does not know it",
				Hint: "leave it out; sallyport doctor lists the names",
			}
		}
	}
	return nil
}

// gitGrant is the grant for working with git.
func gitGrant() NamedGrant {
	return NamedGrant{
		Name:  GrantGit,
		Opens: "committing, branching, merging and rebasing in the repositories of the workspace (objects, refs, packed-refs, logs, index, HEAD and other state of git commands, also in the main repository of a linked work tree)",
		Keeps: "config, config.worktree, hooks, info, modules, branches, remotes, commondir, gitdir, the pointers of linked work trees, included configuration and the directories that core.hooksPath names",
		Commands: []string{
			"git init", "git add", "git commit", "git branch", "git checkout", "git switch",
			"git merge", "git rebase",
			"git stash", "git tag", "git reset", "git cherry-pick", "git worktree add",
			"git fetch DIRECTORY", "git gc",
		},
		Refused: []string{
			"git config NAME VALUE, git remote add, git branch -m, git sparse-checkout: they write to .git/config; to allow that, add --rw with its path",
			"git branch --set-upstream-to, git checkout --track, git branch -d: they report that they cannot write .git/config, and continue",
			"git submodule add: it writes to .git/modules; to allow that and everything else in .git, use --rw with the path of .git instead of the grant",
			"git worktree remove for a tree that an earlier command made, git worktree add outside the workspace: run them outside the sandbox",
		},
	}
}
