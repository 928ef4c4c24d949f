// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package git

import (
	"os"
	"strings"
	"testing"
)

// TestGitAndEmptyDirs has git work with an empty directory in place of everything that may be missing.
func TestGitAndEmptyDirs(t *testing.T) {
	tests := []struct {
		name   string
		before []string // git arguments
		works  bool
	}{
		{name: "hooks", works: true},
		{name: "info", works: true},
		{name: "modules", works: true},
		{name: "branches", works: true},
		{name: "remotes", works: true},
		{name: "commondir"},
		{name: "config"},
		{name: "config.worktree", before: []string{"config", "extensions.worktreeConfig", "true"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := tempDir(t)
			plainRepository(t, dir)
			if test.before != nil {
				git(t, dir, test.before...)
			}
			remove(t, dir+"/.git/"+test.name)
			p, ok := find(shut(t, open(t, dir), Outside{}), dir+"/.git/"+test.name)
			if !ok || !p.Missing || p.IsDir {
				t.Errorf("%+v", p)
			}
			put(t, dir+"/.git/"+test.name+"/", "")
			if err := os.Chmod(dir+"/.git/"+test.name, 0o555); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"status"}, {"add", "-A"}, {"commit", "--allow-empty", "-m", "x"}, {"branch", "-f", "b"}, {"checkout", "-q", "b"},
				{"stash", "list"}, {"worktree", "list"}, {"fetch", "-q", "."}, {"tag", "-f", "t"}, {"repack", "-adq"},
			} {
				if out, ok := gitWorks(t, dir, args...); ok != test.works {
					t.Errorf("git %q succeeds: %v\n%s", args, ok, out)
				}
			}
		})
	}
}

// TestGitAndEmptySubmodule shows that the missing .git of a submodule cannot be held
// by an empty directory, nor by a file.
func TestGitAndEmptySubmodule(t *testing.T) {
	for _, name := range []string{"sub/.git/", "sub/.git"} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			plainRepository(t, dir)
			head := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
			git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+head+",sub")
			put(t, dir+"/sub/", "")
			git(t, dir, "status")
			put(t, dir+"/"+name, "")
			if out, ok := gitWorks(t, dir, "status"); ok {
				t.Errorf("git status succeeds now: %s", out)
			}
		})
	}
}

// A plant is something that git obeys.
type plant struct {
	name  string
	plant func(t *testing.T, dir, mark string)
	found string   // by Check
	at    string   // where git status is run, below the work tree
	empty bool     // there is no repository before
	args  []string // of git, which obeys; git status if nil
}

func plants() []plant {
	evil := func(file string) string {
		return "[core]\n\tfsmonitor = \"touch '" + file + "'; false\"\n\tsshCommand = \"touch '" + file +
			"'; false #\"\n"
	}
	return []plant{
		{name: "commondir", found: ".git/commondir", plant: func(t *testing.T, dir, mark string) {
			plainRepository(t, dir+"/evil")
			put(t, dir+"/evil/.git/config", evil(mark))
			put(t, dir+"/.git/commondir", "../evil/.git\n")
		}},
		{name: "config", found: ".git/config", plant: func(t *testing.T, dir, mark string) {
			put(t, dir+"/.git/config", evil(mark))
		}},
		{name: "config.worktree", found: ".git/config.worktree", plant: func(t *testing.T, dir, mark string) {
			put(t, dir+"/.git/config.worktree", evil(mark))
		}},
		{name: "submodule", found: "sub/.git", plant: func(t *testing.T, dir, mark string) {
			plainRepository(t, dir+"/sub")
			put(t, dir+"/sub/file", "changed\n")
			put(t, dir+"/sub/.git/config", evil(mark))
		}},
		{name: "new submodule", found: "new/.git", plant: func(t *testing.T, dir, mark string) {
			plainRepository(t, dir+"/new")
			git(t, dir, "-c", "advice.addEmbeddedRepo=false", "add", "new")
			put(t, dir+"/new/.git/config", evil(mark))
		}},
		{name: "linked work tree", found: ".git/worktrees/w", at: "w", plant: func(t *testing.T, dir, mark string) {
			git(t, dir, "worktree", "add", "-q", "w")
			plainRepository(t, dir+"/evil")
			put(t, dir+"/evil/.git/config", evil(mark))
			put(t, dir+"/.git/worktrees/w/commondir", dir+"/evil/.git\n")
		}},
		{name: "configuration of a linked work tree", found: ".git/worktrees/w/config.worktree", at: "w", plant: func(t *testing.T, dir, mark string) {
			git(t, dir, "worktree", "add", "-q", "w")
			put(t, dir+"/.git/worktrees/w/config.worktree", evil(mark))
		}},
		{name: "repository", empty: true, found: ".git", plant: func(t *testing.T, dir, mark string) {
			plainRepository(t, dir)
			put(t, dir+"/.git/config", evil(mark))
		}},
		{name: "bare repository", empty: true, args: []string{"fetch", "ssh://x/y"}, found: "HEAD", plant: func(t *testing.T, dir, mark string) {
			git(t, dir, "init", "-q", "--bare", ".")
			put(t, dir+"/config", evil(mark))
		}},
		{name: "bare repository by commondir", empty: true, args: []string{"fetch", "ssh://x/y"}, found: "HEAD", plant: func(t *testing.T, dir, mark string) {
			git(t, dir, "init", "-q", "--bare", "elsewhere")
			put(t, dir+"/HEAD", "ref: refs/heads/main\n")
			put(t, dir+"/commondir", "elsewhere\n")
			put(t, dir+"/elsewhere/config", evil(mark))
		}},
	}
}

// TestGitObeys plants what Snapshot.Check looks for and shows that git obeys it: a
// monitor of the file system is started by git status, a command by git fetch. What Check names is moved
// away, and git obeys it no more.
func TestGitObeys(t *testing.T) {
	for _, test := range plants() {
		t.Run(test.name, func(t *testing.T) {
			dir, away := tempDir(t), tempDir(t)
			var r *Repository
			if !test.empty {
				plainRepository(t, dir)
				head := strings.TrimSpace(git(t, dir, "rev-parse", "HEAD"))
				git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+head+",sub")
				git(t, dir, "config", "extensions.worktreeConfig", "true")
				r = open(t, dir)
			}
			before, err := Take(dir, r, Outside{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if paths, err := before.Check(nil); len(paths) != 0 || err != nil {
				t.Fatalf("before anything: %+v, %v", paths, err)
			}
			test.plant(t, dir, away+"/mark")
			paths, err := before.Check(nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.args == nil {
				test.args = []string{"status"}
			}
			gitWorks(t, dir+"/"+test.at, test.args...)
			if !exists(away + "/mark") {
				t.Error("git does not obey it: the test plants nothing")
			}
			remove(t, away+"/mark")
			if _, ok := find(paths, dir+"/"+test.found); !ok {
				t.Fatalf("found %+v", paths)
			}
			for i, p := range paths {
				if err := os.Rename(p.Path, away+"/"+string(rune('a'+i))); err != nil {
					t.Error(err)
				}
			}
			gitWorks(t, dir+"/"+test.at, test.args...)
			if exists(away + "/mark") {
				t.Errorf("git still obeys it without %+v", paths)
			}
		})
	}
}

// TestCheckIsQuiet does everyday work between a snapshot and its check.
func TestCheckIsQuiet(t *testing.T) {
	dir := tempDir(t)
	plainRepository(t, dir)
	plainRepository(t, dir+"/old")
	git(t, dir, "-c", "advice.addEmbeddedRepo=false", "add", "old")
	before, err := Take(dir, open(t, dir), Outside{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/more", "")
	for _, args := range [][]string{
		{"add", "more"}, {"commit", "-qm", "more"}, {"branch", "b"}, {"worktree", "add", "-q", "linked", "b"}, {"tag", "t"},
		{"commit", "-q", "--allow-empty", "-m", "x"}, {"rebase", "-q", "HEAD~1"}, {"stash", "list"}, {"repack", "-adq"},
	} {
		git(t, dir, args...)
	}
	if paths, err := before.Check(nil); len(paths) != 0 || err != nil {
		t.Errorf("%+v, %v", paths, err)
	}
	empty := tempDir(t)
	before, err = Take(empty, nil, Outside{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, empty+"/HEAD", "")
	put(t, empty+"/refs/", "")
	if paths, err := before.Check(nil); len(paths) != 0 || err != nil {
		t.Errorf("no repository yet: %+v, %v", paths, err)
	}
}

// TestCheckRebase plants a list of steps with a command.
func TestCheckRebase(t *testing.T) {
	tests := []struct {
		name, list string
		found      bool
	}{
		{name: "pick", list: "pick 1234 exec\n# exec x\n"},
		{name: "exec", list: "pick 1234 x\n  exec make\n", found: true},
		{name: "short", list: "x make", found: true},
		{name: "tab", list: "x\tmake", found: true},
		{name: "words that git does not know", list: "exit\nxy z\n", found: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := tempDir(t)
			put(t, dir+"/.git/HEAD", "")
			before, err := Take(dir, open(t, dir), Outside{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir+"/.git/rebase-merge/git-rebase-todo", test.list)
			paths, err := before.Check(nil)
			if _, ok := find(paths, dir+"/.git/rebase-merge"); ok != test.found || err != nil {
				t.Errorf("%+v, %v", paths, err)
			}
			again, err := Take(dir, open(t, dir), Outside{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if paths, err := again.Check(nil); len(paths) != 0 || err != nil {
				t.Errorf("it was there before: %+v, %v", paths, err)
			}
		})
	}
}

// TestGitObeysNUL shows why a NUL byte has to end a key here as well.
func TestGitObeysNUL(t *testing.T) {
	dir := tempDir(t)
	put(t, dir+"/config", "[core \"hookspath\x00x\"]y=evil\n")
	if out := git(t, dir, "config", "--file", dir+"/config", "--null", "--list"); !strings.HasPrefix(out,
		"core.hookspath\n") {
		t.Errorf("git reads %q", out)
	}
}
