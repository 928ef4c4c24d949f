// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
// first one.
func withClones(t *testing.T, j job) *arena {
	t.Helper()
	a := newArena(t)
	j.args = sh(repositoryScript + `mkdir -p b/x b/w; mk b/x/.git; mk b/bare.git
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

// TestOwnRemoved: repositories that an earlier run made can be removed and moved as a whole.
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
		t.Run(script, func(t *testing.T) {
			a := withClones(t, job{})
			if res := mustRun(t, a, &job{args: sh(script)}); res.code != 0 || res.err != "" {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestOwnUnchanged: nothing in a repository that an earlier run made can be changed, whatever is removed or
// moved before. A hook that is off stays off.
func TestOwnUnchanged(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "python3")
	for _, c := range []struct{ name, script string }{
		{"written", "echo evil >b/x/.git/config"},
		{"appended", "echo evil >>b/x/.git/hooks/off"},
		{"a new hook", "echo evil >b/x/.git/hooks/new"},
		{"truncated", "truncate -s 0 b/x/.git/config"},
		{"removed and made", "rm b/x/.git/config; echo evil >b/x/.git/config"},
		{"a directory, removed and made",
			"rm -rf b/x/.git/hooks; mkdir b/x/.git/hooks && echo evil >b/x/.git/hooks/h"},
		{"removed and moved there", "rm b/x/.git/config; mv plant/config b/x/.git/config"},
		{"moved over", "mv plant/config b/x/.git/config"},
		{"a directory moved there", "rm -rf b/x/.git/hooks; mv plant b/x/.git/hooks"},
		{"a directory moved over an empty one", "mv -T plant b/x/.git/refs/heads"},
		{"taken out", "mv b/x/.git/config taken"},
		{"a part taken out", "mv b/x/.git/worktrees/w taken"},
		{"exchanged",
			exchange + `b"plant/config", -100, b"b/x/.git/config", 2))'`},
		{"exchanged, the other way round",
			exchange + `b"b/x/.git/config", -100, b"plant/config", 2))'`},
		{"moved and written", "mv b/x b/y; echo evil >b/y/.git/config"},
		{"its directories are known, moved and written",
			"echo evil >b/x/.git/hooks/n; mv b z; echo evil >z/x/.git/hooks/n"},
		{"itself moved and written", "mv b/x/.git g; echo evil >g/config"},
		{"moved to where another was made",
			repositoryScript + "mkdir n; mk n/.git; rm -rf n/.git; " +
				"mv b/x/.git n/.git; echo evil >n/.git/config"},
		{"moved to where another could be", "mkdir n; mv b/x/.git n/.git; echo evil >n/.git/config"},
		{"by another name", "ln b/x/.git/config c && echo evil >>c"},
		{"through a link", "ln -s b/x/.git/hooks h; echo evil >h/new"},
		{"a link there", "rm b/x/.git/config; ln -s ../../../plant/config b/x/.git/config"},
		{"from within", "cd b/x/.git/hooks && echo evil >new"},
		{"a mode", "chmod 755 b/x/.git/hooks/off"},
		{"a mode, by a descriptor",
			`python3 -c 'import os; os.fchmod(os.open("b/x/.git/hooks/off", os.O_RDONLY), 0o755)'`},
		{"a bare one", "echo evil >b/bare.git/config"},
		{"a bare one, a new hook", "cd b/bare.git/hooks && echo evil >new"},
		{"a bare one, moved", "mv b/bare.git moved; echo evil >moved/config"},
		{"a bare one that is none any more", "rm b/bare.git/HEAD; echo evil >b/bare.git/config"},
		{"the file of a work tree", "echo evil >b/w/.git"},
		{"the file of a work tree, moved over", "mv plant/config b/w/.git"},
		{"the file of a submodule", "echo evil >b/x/sub/.git"},
		{"the git directory of a submodule", "echo evil >b/x/.git/modules/sub/config"},
		{"the git directory of a work tree", "echo evil >b/x/.git/worktrees/w/config.worktree"},
		{"another program's work tree",
			"rm b/x/.git/worktrees/w/commondir; mkdir b/x/.git/worktrees/w/commondir"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := withClones(t, job{})
			must(t, os.Mkdir(a.ws+"/plant", 0o755))
			write(t, a.ws+"/plant/config", "evil")
			if res := mustRun(t, a, &job{args: sh(c.script)}); res.code == 0 {
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
		})
	}
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
			a := withClones(t, job{})
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
		name        string
		made        job // by the first run
		between     func(a *arena) error
		next        job
		grant, gone bool
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
		{name: "removed with the grant", grant: true},
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
		t.Run(c.name, func(t *testing.T) {
			a := newArena(t)
			c.made.args = sh(repositoryScript + `mkdir -p b/x; mk b/x/.git
printf "${MORE-}" >>b/x/.git/config`)
			mustRun(t, a, &c.made)
			if c.between != nil {
				must(t, c.between(a))
			}
			if c.grant {
				p := a.policy().With(sandbox.Grant{Name: "git"})
				c.next.policy = &p
			}
			c.next.args = sh("rm -rf b other")
			if res := mustRun(t, a, &c.next); (res.code == 0) != c.gone {
				t.Errorf("%+v", res)
			}
			if _, err := os.Lstat(a.ws + "/b/x/.git/config"); os.IsNotExist(err) != c.gone {
				t.Error(err)
			}
		})
	}
}
