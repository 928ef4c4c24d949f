// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// repositoryScript makes a git directory, as git clone does.
const repositoryScript = `mk() {
	mkdir -p "$1/hooks" "$1/objects/pack" "$1/refs/heads"
	echo "ref: refs/heads/main" >"$1/HEAD"; echo "[core]" >"$1/config"; echo : >"$1/hooks/off"
}
`

// withClones is an arena in which a run has made a repository, a bare one, and a linked work tree of the
// first one that has a submodule. Where it is plain there are only the first two.
func withClones(t *testing.T, j job, plain bool) *arena {
	t.Helper()
	a := newArena(t)
	j.env = append(j.env, fmt.Sprintf("PLAIN=%v", plain))
	j.args = sh(repositoryScript + `mkdir -p b/x b/w; mk b/x/.git; mk b/bare.git
! $PLAIN || exit 0
mkdir -p b/x/.git/worktrees/w
cd b/x/.git/worktrees/w && echo ../.. >commondir && echo "ref: refs/heads/w" >HEAD && cd ../../../../w &&
echo "gitdir: ../x/.git/worktrees/w" >.git && echo "$PWD/.git" >../x/.git/worktrees/w/gitdir &&
cd .. && mkdir x/sub && mk x/.git/modules/sub && echo "gitdir: ../.git/modules/sub" >x/sub/.git`)
	if res := mustRun(t, a, &j); res.code != 0 {
		t.Fatalf("%+v", res)
	}
	return a
}

// exchange is the beginning of a program that exchanges two files.
const exchange = `python3 -c 'import ctypes; exit(ctypes.CDLL(None).renameat2(-100, `

// others reports whether a script is about other git directories in one, which stay closed with the grant.
func others(script string) bool {
	return slices.ContainsFunc([]string{"b/w", "sub", "worktrees"},
		func(s string) bool { return strings.Contains(script, s) })
}

// granting is the policy of the arena with the grant for git where git is set, or nil.
func granting(a *arena, git bool) *sandbox.Policy {
	if !git {
		return nil
	}
	p := a.policy().With(sandbox.Grant{Name: "git"})
	return &p
}

// TestOwnRemoved: repositories that an earlier run made can be removed and moved as a whole, also with the
// grant for git.
func TestOwnRemoved(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, script := range []string{
		"rm -rf b", "mv b z && rm -rf z", "mv b/x b/y", "rm -rf b/x/sub", "mv b/bare.git other",
		"mv b/w tree && rm -rf tree", "find b -delete", "rm -rf b/x/.git b/bare.git b/w/.git",
		"mv b/x/.git b/git", "rm -rf b/bare.git/hooks",
		"rm -rf b/x && " + repositoryScript + "mk b/x/.git && echo x >b/x/.git/config",
		"mv b/x b/y && mkdir b/x && " + repositoryScript +
			"mk b/x/.git && mv -T b/x/.git b/x/g && rm -rf b/y",
	} {
		for _, git := range []bool{false, true} {
			if git && others(script) {
				continue
			}
			t.Run(fmt.Sprintf("%s, grant %v", script, git), func(t *testing.T) {
				a := withClones(t, job{}, git)
				var after executor.Exit
				j := job{args: sh(script), policy: granting(a, git), after: &after}
				if res := mustRun(t, a, &j); res.code != 0 || res.err != "" || after.Quarantined != nil {
					t.Errorf("%+v, quarantined %v", res, after.Quarantined)
				}
			})
		}
	}
}

// TestOwnUnchanged: nothing in a repository that an earlier run made can be changed, whatever is removed or
// moved before. A hook that is off stays off.
func TestOwnUnchanged(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "python3")
	for _, c := range []struct {
		name, script string
		granted      bool // the grant opens it
	}{
		{"written", "echo evil >b/x/.git/config", false},
		{"appended", "echo evil >>b/x/.git/hooks/off", false},
		{"a new hook", "echo evil >b/x/.git/hooks/new", false},
		{"truncated", "truncate -s 0 b/x/.git/config", false},
		{"removed and made", "rm b/x/.git/config; echo evil >b/x/.git/config", false},
		{"a directory, removed and made",
			"rm -rf b/x/.git/hooks; mkdir b/x/.git/hooks && echo evil >b/x/.git/hooks/h", false},
		{"removed and moved there", "rm b/x/.git/config; mv plant/config b/x/.git/config", false},
		{"moved over", "mv plant/config b/x/.git/config", false},
		{"a directory moved there", "rm -rf b/x/.git/hooks; mv plant b/x/.git/hooks", false},
		{"a directory moved over an empty one", "mv -T plant b/x/.git/refs/heads", true},
		{"taken out", "mv b/x/.git/config taken", false},
		{"a part taken out", "mv b/x/.git/worktrees/w taken", false},
		{"exchanged",
			exchange + `b"plant/config", -100, b"b/x/.git/config", 2))'`, false},
		{"exchanged, the other way round",
			exchange + `b"b/x/.git/config", -100, b"plant/config", 2))'`, false},
		{"moved and written", "mv b/x b/y; echo evil >b/y/.git/config", false},
		{"its directories are known, moved and written",
			"echo evil >b/x/.git/hooks/n; mv b z; echo evil >z/x/.git/hooks/n", false},
		{"itself moved and written", "mv b/x/.git g; echo evil >g/config", false},
		{"moved to where another was made",
			repositoryScript + "mkdir n; mk n/.git; rm -rf n/.git; " +
				"mv b/x/.git n/.git; echo evil >n/.git/config", false},
		{"moved to where another could be", "mkdir n; mv b/x/.git n/.git; echo evil >n/.git/config", false},
		{"by another name", "ln b/x/.git/config c && echo evil >>c", false},
		{"through a link", "ln -s b/x/.git/hooks h; echo evil >h/new", false},
		{"a link there", "rm b/x/.git/config; ln -s ../../../plant/config b/x/.git/config", false},
		{"from within", "cd b/x/.git/hooks && echo evil >new", false},
		{"a mode", "chmod 755 b/x/.git/hooks/off", false},
		{"a mode, by a descriptor",
			`python3 -c 'import os; os.fchmod(os.open("b/x/.git/hooks/off", os.O_RDONLY), 0o755)'`, false},
		{"a bare one", "echo evil >b/bare.git/config", false},
		{"a bare one, a new hook", "cd b/bare.git/hooks && echo evil >new", false},
		{"a bare one, moved", "mv b/bare.git moved; echo evil >moved/config", false},
		{"a bare one that is none any more", "rm b/bare.git/HEAD; echo evil >b/bare.git/config", false},
		{"the file of a work tree", "echo evil >b/w/.git", false},
		{"the file of a work tree, moved over", "mv plant/config b/w/.git", false},
		{"the file of a submodule", "echo evil >b/x/sub/.git", false},
		{"the git directory of a submodule", "echo evil >b/x/.git/modules/sub/config", false},
		{"the git directory of a work tree", "echo evil >b/x/.git/worktrees/w/config.worktree", false},
		{"a link in the place of data", "ln -sf ../../../plant/config b/x/.git/HEAD", false},
		{"a submodule made there", "mkdir b/x/.git/modules && mv plant b/x/.git/modules/evil", false},
		{"moved, and a list of programs", "mv b/x b/y; cd b/y/.git; mkdir rebase-merge && " +
			"echo evil >rebase-merge/git-rebase-todo", false},
		{"another program's work tree",
			"rm b/x/.git/worktrees/w/commondir; mkdir b/x/.git/worktrees/w/commondir", false},
	} {
		for _, git := range []bool{false, true} {
			if git && (others(c.script) || c.granted) {
				continue
			}
			t.Run(fmt.Sprintf("%s, grant %v", c.name, git),
				func(t *testing.T) { unchanging(t, c.script, git) })
		}
	}
}

// unchanging plays an attack on what an earlier run made.
func unchanging(t *testing.T, script string, git bool) {
	a := withClones(t, job{}, git)
	must(t, os.Mkdir(a.ws+"/plant", 0o755))
	write(t, a.ws+"/plant/config", "evil")
	j := job{args: sh(script), policy: granting(a, git)}
	if res := mustRun(t, a, &j); res.code == 0 {
		t.Errorf("succeeds: %+v", res)
	}
	must(t, os.RemoveAll(a.ws+"/plant"))
	must(t, filepath.WalkDir(a.ws, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		must(t, err)
		info, err := e.Info()
		must(t, err)
		if strings.Contains(string(text), "evil") || info.Mode()&0o111 != 0 {
			t.Errorf("%s: %v %q", path, info.Mode(), text)
		}
		return nil
	}))
}

// TestOwnReplaced: what has taken the place of a repository that an earlier run made is a new one, and so is
// one at another place.
func TestOwnReplaced(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, c := range []struct{ script, want string }{
		{"rm -rf b/x; mk b/x/.git", "b/x/.git"},
		{"mkdir n; mk n/.git; rm -rf b/x; mv n b/x", "b/x/.git"},
		{"rm -rf b/x; mv b/bare.git b/x", "b/x"},
		{"mv b/x b/y", "b/y/.git"},
		{"mv b/x b/y", "b/y/sub/.git"},
		{"mv b/x b/y; mkdir b/x; mk b/x/.git", "b/y/.git"},
		{"mkdir n; mv b/x/.git n/.git", "n/.git"},
		{"rm -rf b/x/.git; mk b/x", "b/x"},
		{"rm -rf b/bare.git; mk b/bare.git", "b/bare.git"},
		{"rm b/w/.git; mk b/w/.git", "b/w/.git"},
		{"true", ""},
		{"rm -rf b/x b/w b/bare.git", ""},
	} {
		t.Run(c.script, func(t *testing.T) {
			a := withClones(t, job{}, false)
			var after executor.Exit
			res := mustRun(t, a, &job{args: sh(repositoryScript + c.script), after: &after})
			if res.code != 0 {
				t.Errorf("%+v", res)
			}
			named := slices.ContainsFunc(after.New,
				func(n executor.New) bool { return n.Path == a.ws+"/"+c.want })
			if named != (c.want != "") || c.want == "" && len(after.New) > 0 {
				t.Errorf("%+v", after.New)
			}
		})
	}
}

// TestOwnNoMore: a repository stays where it is that people have made or changed, that nothing tells who
// made, or that no observer watches over. So does what leads out of it.
func TestOwnNoMore(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, c := range []struct {
		name    string
		made    job // by the first run
		between func(a *arena) error
		next    job
		gone    bool
	}{
		{name: "a commit", between: func(a *arena) error {
			return os.WriteFile(a.ws+"/b/x/.git/COMMIT_EDITMSG", nil, 0o644)
		}},
		{name: "a branch", between: func(a *arena) error {
			return os.WriteFile(a.ws+"/b/x/.git/refs/heads/new", nil, 0o644)
		}},
		{name: "a setting", between: func(a *arena) error {
			return os.WriteFile(a.ws+"/b/x/.git/config", []byte("[user]\n"), 0o644)
		}},
		{name: "a mode", between: func(a *arena) error {
			return os.Chmod(a.ws+"/b/x/.git/hooks/off", 0o755)
		}},
		{name: "its git directory was moved", between: func(a *arena) error {
			return os.Rename(a.ws+"/b/x/.git", a.ws+"/b/x/old")
		}, gone: true},
		{name: "cloned outside", between: func(a *arena) error {
			if err := os.Rename(a.ws+"/b/x/.git", a.base+"/moved"); err != nil {
				return err
			}
			return os.CopyFS(a.ws+"/b/x/.git", os.DirFS(a.base+"/moved"))
		}},
		{name: "a directory of hooks elsewhere", made: job{env: []string{"MORE=[core]hooksPath=../../h"}}},
		{name: "made without an observer", made: job{blind: true}},
		{name: "removed without an observer", next: job{blind: true}},
		{name: "removed where namespaces can be made", next: job{allow: []string{"userns"}}},
		{name: "something is gone", between: func(a *arena) error {
			return os.Remove(a.ws + "/b/x/.git/hooks/off")
		}, gone: true},
		{name: "moved by a person", between: func(a *arena) error {
			return os.Rename(a.ws+"/b", a.ws+"/other")
		}, gone: true},
		{name: "its work tree was changed", between: func(a *arena) error {
			return os.WriteFile(a.ws+"/b/x/main.c", nil, 0o644)
		}, gone: true},
	} {
		for _, git := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, grant %v", c.name, git), func(t *testing.T) {
				a := newArena(t)
				c.made.args = sh(repositoryScript + `mkdir -p b/x; mk b/x/.git
printf "${MORE-}" >>b/x/.git/config`)
				mustRun(t, a, &c.made)
				if c.between != nil {
					must(t, c.between(a))
				}
				c.next.args, c.next.policy = sh("rm -rf b other"), granting(a, false)
				if res := mustRun(t, a, &c.next); (res.code == 0) != c.gone {
					t.Errorf("%+v", res)
				}
				if _, err := os.Lstat(a.ws + "/b/x/.git/config"); os.IsNotExist(err) != c.gone {
					t.Error(err)
				}
			})
		}
	}
}

// TestOwnCommitted: with the grant for git, commands commit in what earlier runs have made, and it can be
// removed afterwards. What a person does in one makes it theirs even so.
func TestOwnCommitted(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "git")
	const commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m "
	person := func(a *arena) error {
		return os.WriteFile(a.ws+"/b/x/.git/COMMIT_EDITMSG", []byte("a"), 0o644)
	}
	for _, c := range []struct {
		name, script string
		person       func(a *arena) error
	}{
		{"a commit", commit + "c", nil},
		{"a branch, a tag, a merge", "git checkout -q -b o && " + commit + "c && git tag t && " +
			"git checkout -q - && git merge -q o && git gc -q && git stash list", nil},
		{"a setting", "git config a.b c", nil},
		{"a person's commit", "true", person},
		{"a person's commit meanwhile", "cat ../../wait", nil},
		{"a person's commit after the command's", commit + "c", person},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			made := job{args: sh("mkdir b && git init -q b/x && cd b/x && " + commit + "first")}
			if res := mustRun(t, a, &made); res.code != 0 {
				t.Fatalf("%+v", res)
			}
			meanwhile := strings.Contains(c.script, "wait")
			if meanwhile {
				must(t, unix.Mkfifo(a.ws+"/wait", 0o600))
				go func() {
					f, err := os.OpenFile(a.ws+"/wait", os.O_WRONLY, 0) // waits for the command
					if err == nil {
						_ = person(a)
						f.Close()
					}
				}()
			}
			j := job{args: sh("cd b/x && " + c.script), policy: granting(a, true)}
			if res := mustRun(t, a, &j); (res.code == 0) != (c.name != "a setting") {
				t.Errorf("%+v", res)
			}
			if c.person != nil {
				must(t, c.person(a))
			}
			res := mustRun(t, a, &job{args: sh("rm -rf b"), policy: granting(a, true)})
			if (res.code == 0) != (c.person == nil && !meanwhile) {
				t.Errorf("%+v", res)
			}
		})
	}
}
