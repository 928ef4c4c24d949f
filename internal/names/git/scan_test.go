// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// patient is a limit that only the number of entries reaches.
func patient(entries int) Limit { return Limit{Entries: entries, Time: time.Hour} }

// names returns the repositories found, relative to the root.
func names(t testing.TB, root string, found Found) []string {
	t.Helper()
	var names []string
	for _, path := range found.Repositories {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func TestScan(t *testing.T) {
	testenv.RunAsOrdinary(t)
	tests := []struct {
		name  string
		files []string
		want  []string
	}{
		{name: "nothing", files: []string{"a/b/c/file"}},
		{name: "the root is not below itself", files: []string{".git/HEAD"}},
		{name: "directory", files: []string{"a/.git/HEAD", "b/c/.git/HEAD"}, want: []string{"a", "b/c"}},
		{name: "file", files: []string{"a/b/.git"}, want: []string{"a/b"}},
		{name: "link", files: []string{"a/.git -> x"}, want: []string{"a"}},
		{name: "in each other", files: []string{"a/.git/HEAD", "a/b/.git/HEAD"}, want: []string{"a", "a/b"}},
		{name: "not in a git directory", files: []string{"a/.git/b/.git/HEAD"}, want: []string{"a"}},
		{name: "bare", files: []string{"a/HEAD", "a/objects/", "a/refs/"}, want: []string{"a"}},
		{name: "bare by commondir", files: []string{"a/HEAD", "a/commondir"}, want: []string{"a"}},
		{name: "half a bare one", files: []string{"a/HEAD", "a/objects/"}},
		{name: "not in a bare one's own", files: []string{"a/HEAD", "a/objects/", "a/refs/", "a/modules/m/HEAD", "a/modules/m/objects/", "a/modules/m/refs/"}, want: []string{"a"}},
		{name: "in a bare one", files: []string{"a/HEAD", "a/objects/", "a/refs/", "a/sub/.git/HEAD"}, want: []string{"a", "a/sub"}},
		{name: "behind a link", files: []string{"a -> real", "real/sub/.git/HEAD"}, want: []string{"real/sub"}},
		{name: "another case is another name here", files: []string{"a/.GIT/HEAD"}},
		{name: "strange names", files: []string{"a\nb/.git/HEAD", "c\xff/.git/HEAD"}, want: []string{"a\nb", "c\xff"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := tempDir(t)
			for _, file := range test.files {
				if name, target, ok := strings.Cut(file, " -> "); ok {
					link(t, target, dir+"/"+name)
					continue
				}
				put(t, dir+"/"+file, "")
			}
			found := Scan(dir, patient(1000))
			if diff := cmp.Diff(test.want, names(t, dir, found), cmpopts.EquateEmpty()); diff != "" ||
				!found.Complete || found.Stopped != "" {
				t.Errorf("complete %v, stopped at %q\n%s", found.Complete, found.Stopped, diff)
			}
		})
	}
}

// TestScanFoldedName makes .GIT resolve to the same directory as .git by the means that
// every file system here has: both stand there.
func TestScanFoldedName(t *testing.T) {
	for _, name := range []string{".GIT", ".gIt", "git~1", "GIT~1", ".g\u200cit", "\u200c.git"} {
		m := marks{}
		if m.note(name) || !m.like {
			t.Errorf("%q is not asked for", name)
		}
	}
	for _, name := range []string{".gitignore", "git", ".gi", "github", "git~2", ""} {
		m := marks{}
		m.note(name)
		if m.like {
			t.Errorf("%q is asked for", name)
		}
	}
}

// TestScanBound scans a tree that is bigger than the limit: what was read is told, and where it ended.
func TestScanBound(t *testing.T) {
	dir := tempDir(t)
	var want []string
	for i := range 30 {
		for j := range 10 {
			name := fmt.Sprintf("d%02d/e%02d", i, j)
			put(t, dir+"/"+name+"/sub/file", "")
			if (i+j)%7 == 0 {
				put(t, dir+"/"+name+"/.git/", "")
				want = append(want, name)
			}
		}
	}
	last := -1
	for _, entries := range []int{100, 350, 600} {
		found := Scan(dir, patient(entries))
		if found.Scanned > entries || found.Complete || !within(dir, found.Stopped) ||
			len(found.Repositories) < last {
			t.Errorf("limit %d: %d read, complete %v at %q, %d found", entries, found.Scanned, found.Complete,
				found.Stopped, len(found.Repositories))
		}
		last = len(found.Repositories)
	}
	found := Scan(dir, patient(2000))
	if diff := cmp.Diff(want, names(t, dir, found)); diff != "" || !found.Complete || found.Stopped != "" {
		t.Errorf("complete %v at %q\n%s", found.Complete, found.Stopped, diff)
	}
	for i := range 2 * freeEntries {
		put(t, fmt.Sprintf("%s/d00/f%04d", dir, i), "")
	}
	if found := Scan(dir, Limit{Time: 1}); found.Complete || found.Scanned < freeEntries ||
		found.Scanned > freeEntries+256 {
		t.Errorf("without time: %d read, complete %v", found.Scanned, found.Complete)
	}
}

// TestRacy: what was just changed when it was read is not trusted.
func TestRacy(t *testing.T) {
	old := stamp{modified: 100e9, changed: 100e9}
	if old.racy(102e9) || !old.racy(102e9-1) || !(stamp{modified: 1, changed: 100e9}).racy(101e9) ||
		!(stamp{modified: 200e9, changed: 1}).racy(100e9) {
		t.Error("the bound is not two seconds")
	}
}

// TestScanHuge has one directory that is beyond the limit alone.
func TestScanHuge(t *testing.T) {
	dir := tempDir(t)
	for i := range 50 {
		put(t, fmt.Sprintf("%s/big/%03d", dir, i), "")
	}
	if found := Scan(dir, patient(10)); found.Complete || found.Scanned != 10 || found.Stopped != dir+"/big" {
		t.Errorf("%+v", found)
	}
	if found := Scan(dir, Limit{Entries: -1}); found.Complete || found.Scanned != 0 || found.Stopped != dir {
		t.Errorf("with nothing allowed: %+v", found)
	}
	if found := Scan(dir, Limit{Time: -1}); found.Complete || found.Scanned != 0 {
		t.Errorf("with no time: %+v", found)
	}
}

func TestScanUnreadable(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := tempDir(t)
	put(t, dir+"/closed/a/.git", "")
	put(t, dir+"/open/.git", "")
	if err := os.Chmod(dir+"/closed", 0); err != nil {
		t.Fatal(err)
	}
	want := []string{"open"}
	if os.Geteuid() == 0 {
		want = []string{"closed/a", "open"}
	}
	found := Scan(dir, patient(100))
	if diff := cmp.Diff(want, names(t, dir, found)); diff != "" || !found.Complete {
		t.Errorf("%+v\n%s", found, diff)
	}
	if err := os.Chmod(dir+"/closed", 0o700); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"closed/a", "open"}, names(t, dir, Scan(dir, patient(100)))); diff != "" {
		t.Error(diff)
	}
}

// TestScanVanishing: directories that come and go, as the mount points of other runs do, leave
// no search unfinished.
func TestScanVanishing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	over := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
			}
			name := filepath.Join(root, strconv.Itoa(i%8))
			if err := errors.Join(os.Mkdir(name, 0o755), os.Remove(name)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 2000 {
		if found := Scan(root, Limit{Time: time.Hour}); !found.Complete {
			t.Errorf("stopped at %s", found.Stopped)
			break
		}
	}
	close(over)
	all.Wait()
}

func TestScanNowhere(t *testing.T) {
	dir := tempDir(t)
	put(t, dir+"/file", "")
	for _, name := range []string{"missing", "file"} {
		if found := Scan(dir+"/"+name, Limit{}); !found.Complete || len(found.Repositories) != 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestGitlinksRemembered changes an index that is remembered.
func TestGitlinksRemembered(t *testing.T) {
	dir := tempDir(t)
	path := filepath.Join(dir, "index")
	put(t, path, string(indexBytes(2, 1, entryBytes(0o160000, "sub"))))
	read := func(c *indexes, want string) {
		t.Helper()
		names, err := c.gitlinks(path, sha1Size)
		if err != nil || !slices.Equal(names, []string{want}) {
			t.Errorf("names %q, %v, want %q", names, err, want)
		}
	}
	c := &indexes{}
	read(c, "sub")
	if len(c.known) != 0 {
		t.Fatal("an index that is younger than two seconds is trusted")
	}
	st, err := lstatStamp(path)
	if err != nil {
		t.Fatal(err)
	}
	c.known = map[string]indexRecord{path: {hash: sha1Size, stamp: st, names: []string{"remembered"}}}
	read(c, "remembered")
	read(nil, "sub")
	if names, err := c.gitlinks(path, sha256Size); err == nil {
		t.Errorf("other names of objects: %q", names)
	}
	c.known = map[string]indexRecord{path: {hash: sha1Size, stamp: st, names: []string{"remembered"}}}
	put(t, path, string(indexBytes(2, 2, entryBytes(0o160000, "sub"), entryBytes(0o100644, "file"))))
	read(c, "sub")
}

// TestScanSkipsKernelFiles searches no file system that only shows what the kernel knows, where
// one is mounted in a workspace, and any other one.
func TestScanSkipsKernelFiles(t *testing.T) {
	ownMounts(t)
	dir := tempDir(t)
	for name, kind := range map[string]string{"proc": "proc", "disk": "tmpfs"} {
		put(t, filepath.Join(dir, name)+"/", "")
		if err := unix.Mount(kind, filepath.Join(dir, name), kind, 0, ""); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Unmount(filepath.Join(dir, name), unix.MNT_DETACH) }()
	}
	put(t, dir+"/disk/sub/.git/", "")
	found := Scan(dir, patient(100_000))
	if !slices.Equal(names(t, dir, found), []string{"disk/sub"}) || !found.Complete || found.Scanned > 10 {
		t.Errorf("found %q, complete %v, %d names", found.Repositories, found.Complete, found.Scanned)
	}
	if _, err := os.Stat(filepath.Join(dir, "proc", "self")); err != nil {
		t.Errorf("nothing is mounted: %v", err)
	}
}

// TestRebaseElsewhere: with the grant in a linked work tree the list of a rebase in
// the main one, and in another linked one, can be written to.
func TestRebaseElsewhere(t *testing.T) {
	top := t.TempDir()
	common := filepath.Join(top, "main", ".git")
	for _, name := range []string{"a", "b"} {
		dir := filepath.Join(common, "worktrees", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, "commondir"), "../..\n")
	}
	put(t, filepath.Join(top, "a", ".git"), "gitdir: "+filepath.Join(common, "worktrees", "a")+"\n")
	before := filepath.Join(common, "worktrees", "b", "rebase-merge")
	put(t, filepath.Join(before, "git-rebase-todo"), "exec make\n")
	r, err := Open(filepath.Join(top, "a"))
	if err != nil || r == nil || r.Common != common {
		t.Fatalf("%+v, %v", r, err)
	}
	s, err := Take(r.Work, r, Outside{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if paths, err := s.Check(nil); err != nil || len(paths) > 0 {
		t.Errorf("nothing has changed: %v, %v", paths, err)
	}
	want := []string{filepath.Join(common, "rebase-merge"), before}
	put(t, filepath.Join(want[0], "git-rebase-todo"), "pick 1\n\tx evil\n")
	put(t, filepath.Join(want[1], "git-rebase-todo"), "exec make\nexec evil\n")
	paths, err := s.Check(nil)
	var got []string
	for _, p := range paths {
		got = append(got, p.Path)
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
