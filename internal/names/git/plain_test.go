// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package git

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// believe makes the cache remember a repository as if it had been still for long:
// how long it has been still is the only thing that a test cannot make.
func believe(t *testing.T, c *Cache, dir string) {
	t.Helper()
	record, there := c.record(dir + "/.git")
	if r := open(t, dir); !there || !r.plain(r.read(Outside{})) {
		t.Fatalf("%s is not plain: %v", dir, there)
	}
	c.know(dir+"/.git", record)
}

// A change is one that is made to a repository that is remembered.
type change struct {
	name string
	do   func(t *testing.T, dir, home string)
	hit  bool // the memory is still right
}

// changes are those that matter to what is protected, and a few that do not.
func changes() []change {
	return []change{
		{name: "nothing", do: func(*testing.T, string, string) {}, hit: true},
		{name: "file in the work tree", do: func(t *testing.T, dir, _ string) { put(t, dir+"/file", "") }, hit: true},
		{name: "hook", do: func(t *testing.T, dir, _ string) { put(t, dir+"/.git/hooks/pre-commit", "") }},
		{name: "hooks path", do: func(t *testing.T, dir, _ string) { put(t, dir+"/.git/config", "[core]\n\thooksPath = h\n") }},
		{name: "include", do: func(t *testing.T, dir, _ string) { put(t, dir+"/.git/config", "[include]\n\tpath = ../more\n") }},
		{name: "conditional include", do: func(t *testing.T, dir, _ string) {
			put(t, dir+"/.git/config", "[includeIf \"gitdir:/\"]\n\tpath = ../more\n")
		}},
		{name: "broken config", do: func(t *testing.T, dir, _ string) { put(t, dir+"/.git/config", "[core") }},
		{name: "config gone", do: func(t *testing.T, dir, _ string) { remove(t, dir+"/.git/config") }},
		{name: "config is a link", do: func(t *testing.T, dir, _ string) {
			remove(t, dir+"/.git/config")
			link(t, "../more", dir+"/.git/config")
		}},
		{name: "config of the work tree", do: func(t *testing.T, dir, _ string) { put(t, dir+"/.git/config.worktree", "[core]\n\thooksPath = h\n") }},
		{name: "common directory", do: func(t *testing.T, dir, _ string) { put(t, dir+"/.git/commondir", "../other\n") }},
		{name: "hook is a link", do: func(t *testing.T, dir, _ string) { link(t, "../../h", dir+"/.git/hooks/pre-push") }},
		{name: "hooks are a link", do: func(t *testing.T, dir, _ string) {
			remove(t, dir+"/.git/hooks")
			link(t, "../h", dir+"/.git/hooks")
		}},
		{name: "info is a link", do: func(t *testing.T, dir, _ string) {
			remove(t, dir+"/.git/info")
			link(t, "../h", dir+"/.git/info")
		}},
		{name: "submodule", do: func(t *testing.T, dir, _ string) {
			git(t, dir, "update-index", "--add", "--cacheinfo", "160000,4b825dc642cb6eb9a060e54bf8d69288fbee4904,sub")
		}},
		{name: "git directory is a file", do: func(t *testing.T, dir, _ string) {
			if err := os.Rename(dir+"/.git", dir+"/moved"); err != nil {
				t.Fatal(err)
			}
			put(t, dir+"/.git", "gitdir: moved\n")
		}},
		{name: "git directory is another", do: func(t *testing.T, dir, _ string) {
			if err := os.Rename(dir+"/.git", dir+"/moved"); err != nil {
				t.Fatal(err)
			}
			plainRepository(t, dir)
			put(t, dir+"/.git/config", "[core]\n\thooksPath = h\n")
		}},
		{name: "git directory gone", do: func(t *testing.T, dir, _ string) { remove(t, dir+"/.git") }},
		{name: "work tree is a link", do: func(t *testing.T, dir, _ string) {
			if err := os.Rename(dir, dir+"2"); err != nil {
				t.Fatal(err)
			}
			link(t, dir+"2", dir)
		}},
		{name: "hooks of the user", do: func(t *testing.T, _, home string) {
			put(t, home+"/.gitconfig", "[core]\n\thooksPath = .h\n[include]\n\tpath = more\n")
		}, hit: true},
	}
}

// TestOpenProtectedChanges: the result for a repository that was remembered and has
// changed is the same as without a memory.
func TestOpenProtectedChanges(t *testing.T) {
	for _, change := range changes() {
		t.Run(change.name, func(t *testing.T) {
			base, home := tempDir(t), tempDir(t)
			dir := base + "/work"
			plainRepository(t, dir)
			c := &Cache{}
			believe(t, c, dir)
			change.do(t, dir, home)
			o := Surroundings(func(name string) (string, bool) { return home, name == "HOME" })
			wantRepo, wantPaths, wantErr := OpenProtected(dir, o)
			o.Cache = c
			gotRepo, gotPaths, gotErr := OpenProtected(dir, o.AtOnce())
			if diff := cmp.Diff(wantRepo, gotRepo, cmp.AllowUnexported(Repository{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(wantPaths, gotPaths); diff != "" {
				t.Error(diff)
			}
			if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
				t.Errorf("%v, want %v", gotErr, wantErr)
			}
			if record, ok := c.record(dir + "/.git"); change.hit != (ok && c.isPlain(dir+"/.git", record)) {
				t.Errorf("remembered: %v, want %v", !change.hit, change.hit)
			}
		})
	}
}

// TestOpenProtectedRacy: what has changed just now is not remembered.
func TestOpenProtectedRacy(t *testing.T) {
	dir := tempDir(t)
	plainRepository(t, dir)
	c := &Cache{}
	o := Outside{Cache: c}.AtOnce()
	if _, _, err := OpenProtected(dir, o); err != nil || len(c.plain) != 0 {
		t.Errorf("%v, %v", c.plain, err)
	}
	record, _ := c.record(dir + "/.git")
	for _, s := range record {
		if s == noStamp {
			t.Fatal("a stamp is missing")
		}
		now := s.changed + racyTime
		if old := (plainRecord{s}); old.racy(now) || !old.racy(now-1) || !(plainRecord{3: s}).racy(now-1) {
			t.Errorf("racy is wrong for %v", s)
		}
	}
}

// TestNotPlain: a repository is not plain if a file decides about it that has no stamp
// in the record.
func TestNotPlain(t *testing.T) {
	for name, text := range map[string]string{"commondir": ".\n", "config": "[include]\n\tpath = missing/file\n"} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			plainRepository(t, dir)
			put(t, dir+"/.git/"+name, text)
			if r := open(t, dir); r.plain(r.read(Outside{})) {
				t.Error("it is plain")
			}
		})
	}
}
