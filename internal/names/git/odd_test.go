// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package git

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// taken returns the snapshot of a work tree.
func taken(t *testing.T, dir string) *Snapshot {
	t.Helper()
	s, err := Take(dir, open(t, dir), Outside{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checked returns what the snapshot finds.
func checked(t *testing.T, s *Snapshot) []Path {
	t.Helper()
	paths, err := s.Check(nil)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestCheckLinks: a new symbolic link is found wherever it lies in a git directory, and
// an old one only when it leads elsewhere.
func TestCheckLinks(t *testing.T) {
	for _, name := range []string{
		"COMMIT_EDITMSG", "MERGE_MSG", "FETCH_HEAD", "HEAD", "index", "packed-refs", "logs/HEAD",
		"logs/refs/heads/main", "refs/heads/x", "refs/tags",
		"objects/pack", "objects/info/alternates", "objects/ab", "rebase-merge",
		"rebase-merge/git-rebase-todo", "sequencer/todo", "MERGE_RR",
		"rr-cache", "modules/sub/HEAD", "worktrees/w/HEAD", "worktrees/w/logs/HEAD", "lfs/x", "of/a/tool",
	} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			put(t, dir+"/.git/HEAD", "")
			before := taken(t, dir)
			remove(t, dir+"/.git/"+name)
			link(t, dir+"/elsewhere", dir+"/.git/"+name)
			want(t, checked(t, before), dir+"/.git/"+name, "s")
			again := taken(t, dir)
			if paths := checked(t, again); len(paths) != 0 {
				t.Errorf("it was there before: %+v", paths)
			}
			remove(t, dir+"/.git/"+name)
			link(t, dir+"/another", dir+"/.git/"+name)
			want(t, checked(t, again), dir+"/.git/"+name, "s")
		})
	}
}

// TestCheckOdd: neither pipes nor sockets are git's, nor links in a directory that was
// moved there or that cannot be listed.
func TestCheckOdd(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := tempDir(t)
	put(t, dir+"/.git/logs/HEAD", "")
	put(t, dir+"/.git/annex/", "")
	put(t, dir+"/.git/HEAD", "")
	link(t, "x", dir+"/made/before")
	before := taken(t, dir)
	if err := syscall.Mkfifo(dir+"/.git/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+"/made", dir+"/.git/lfs"); err != nil {
		t.Fatal(err)
	}
	link(t, "x", dir+"/.git/annex/link")
	if err := os.Chmod(dir+"/.git/annex", 0o300); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir+"/.git/annex", 0o700) })
	paths := checked(t, before)
	want(t, paths, dir+"/.git/pipe", "")
	want(t, paths, dir+"/.git/lfs/before", "s")
	if os.Geteuid() == 0 {
		want(t, paths, dir+"/.git/annex/link", "s")
	} else {
		want(t, paths, dir+"/.git/annex", "f")
	}
	if len(paths) != 3 {
		t.Errorf("%+v", paths)
	}
}

// TestCheckLinksClosed: what could not be written to is not looked at.
func TestCheckLinksClosed(t *testing.T) {
	dir := tempDir(t)
	put(t, dir+"/.git/HEAD", "")
	put(t, dir+"/.git/lfs/", "")
	before := taken(t, dir)
	link(t, "x", dir+"/.git/lfs/x")
	paths, err := before.Check(func(path string) bool { return path == dir+"/.git/lfs" })
	if err != nil || len(paths) != 0 {
		t.Errorf("%+v, %v", paths, err)
	}
}

// TestCheckBareLinks: linked work trees in a bare repository have links of their own.
func TestCheckBareLinks(t *testing.T) {
	dir := tempDir(t)
	git(t, dir, "init", "-q", "--bare")
	git(t, dir, "commit-tree", "-m", "x", "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
	before := taken(t, dir)
	link(t, "x", dir+"/tree/node_modules/link")
	link(t, "x", dir+"/refs/heads/link")
	link(t, "x", dir+"/FETCH_HEAD")
	paths := checked(t, before)
	want(t, paths, dir+"/refs/heads/link", "s")
	want(t, paths, dir+"/FETCH_HEAD", "s")
	if len(paths) != 2 {
		t.Errorf("%+v", paths)
	}
}

// TestCheckLinksOfGit: with core.preferSymlinkRefs git makes links for symbolic refs.
func TestCheckLinksOfGit(t *testing.T) {
	dir := tempDir(t)
	plainRepository(t, dir)
	git(t, dir, "config", "core.preferSymlinkRefs", "true")
	before := taken(t, dir)
	git(t, dir, "checkout", "-q", "-b", "other")
	if !isLink(dir + "/.git/HEAD") {
		remove(t, dir+"/.git/HEAD") // this git makes none any more
		link(t, "refs/heads/other", dir+"/.git/HEAD")
	}
	paths := checked(t, before)
	if len(paths) != 0 {
		t.Errorf("%+v", paths)
	}
	remove(t, dir+"/.git/HEAD")
	link(t, "refs/../../x", dir+"/.git/HEAD")
	want(t, checked(t, before), dir+"/.git/HEAD", "s")
}

// TestOddBound: a git directory with too many names is an error, also one with few that
// are long.
func TestOddBound(t *testing.T) {
	dir := tempDir(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		put(t, dir+"/.git/"+name, "")
	}
	for left, found := range map[int]bool{4: true, 5: false} {
		w := oddWalk{found: map[string]string{}, left: left}
		var many *NamesError
		if err := w.walk(dir + "/.git"); errors.As(err, &many) != found {
			t.Errorf("%d: %v", left, err)
		}
	}
	link(t, strings.Repeat("x", 320), dir+"/.git/e")
	w := oddWalk{found: map[string]string{}, left: 12}
	var many *NamesError
	if err := w.walk(dir + "/.git"); !errors.As(err, &many) {
		t.Errorf("a long text: %v", err)
	}
}
