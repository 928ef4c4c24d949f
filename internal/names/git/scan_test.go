// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
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
			c := &Cache{}
			for range 3 {
				found := Scan(dir, c, patient(1000))
				if diff := cmp.Diff(test.want, names(t, dir, found), cmpopts.EquateEmpty()); diff != "" || !found.Complete || found.Stopped != "" {
					t.Errorf("complete %v, stopped at %q\n%s", found.Complete, found.Stopped, diff)
				}
				settle(t, c)
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

// TestScanCoverage scans a tree that is much bigger than the limit, and changes it
// meanwhile.
func TestScanCoverage(t *testing.T) {
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
	file := tempDir(t) + "/cache"
	runs := 0
	var last int
	for {
		c := LoadCache(file)
		found := Scan(dir, c, patient(100))
		if found.Scanned > 100+16 {
			t.Errorf("%d entries", found.Scanned)
		}
		if len(found.Repositories) < last {
			t.Errorf("%d repositories after %d", len(found.Repositories), last)
		}
		last = len(found.Repositories)
		settle(t, c)
		if err := c.Save(file); err != nil {
			t.Fatal(err)
		}
		if runs++; last == len(want) {
			break
		}
		if found.Complete || found.Stopped == "" || runs > 1000 {
			t.Fatalf("run %d: complete %v at %q with %d of %d", runs, found.Complete, found.Stopped, last, len(want))
		}
	}
	if runs < 3 {
		t.Errorf("all in %d runs: the limit does not hold", runs)
	}
	c := LoadCache(file)
	for range 1000 {
		if found := Scan(dir, c, patient(2000)); found.Complete {
			if diff := cmp.Diff(want, names(t, dir, found)); diff != "" {
				t.Error(diff)
			}
			return
		}
	}
	t.Error("never complete")
}

// TestScanChanges changes a tree between two scans with a cache that trusts what
// it can.
func TestScanChanges(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		want   []string
		read   int // at most so many names and directories; 0 is not checked
	}{
		{name: "nothing", change: func(*testing.T, string) {}, want: []string{"a/b", "c"}, read: 6},
		{name: "new", change: func(t *testing.T, dir string) { put(t, dir+"/d/e/.git", "") }, want: []string{"a/b", "c", "d/e"}},
		{name: "in a known directory", change: func(t *testing.T, dir string) { put(t, dir+"/d/.git", "") }, want: []string{"a/b", "c", "d"}},
		{name: "no longer a repository", change: func(t *testing.T, dir string) { remove(t, dir+"/c/.git") }, want: []string{"a/b"}},
		{name: "gone", change: func(t *testing.T, dir string) { remove(t, dir+"/a") }, want: []string{"c"}},
		{name: "turned into a link", change: func(t *testing.T, dir string) {
			remove(t, dir+"/a")
			link(t, "d", dir+"/a")
			put(t, dir+"/d/b/.git", "")
		}, want: []string{"c", "d/b"}},
		{name: "moved", change: func(t *testing.T, dir string) {
			if err := os.Rename(dir+"/a", dir+"/x"); err != nil {
				t.Fatal(err)
			}
		}, want: []string{"c", "x/b"}},
		{name: "exchanged", change: func(t *testing.T, dir string) {
			for _, pair := range [][2]string{{"/a", "/tmp"}, {"/d", "/a"}, {"/tmp", "/d"}} {
				if err := os.Rename(dir+pair[0], dir+pair[1]); err != nil {
					t.Fatal(err)
				}
			}
		}, want: []string{"c", "d/b"}},
		{name: "with the old time", change: func(t *testing.T, dir string) {
			info, err := os.Stat(dir + "/d")
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir+"/d/.git", "")
			if err := os.Chtimes(dir+"/d", info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, want: []string{"a/b", "c", "d"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := tempDir(t)
			for _, name := range []string{"a/b/.git/", "c/.git/", "d/file"} {
				put(t, dir+"/"+name, "")
			}
			c := &Cache{}
			Scan(dir, c, patient(1000))
			settle(t, c)
			c, ok := decodeCache(c.encode())
			if !ok {
				t.Fatal("the cache cannot be read back")
			}
			test.change(t, dir)
			for range 2 {
				found := Scan(dir, c, patient(1000))
				if diff := cmp.Diff(test.want, names(t, dir, found)); diff != "" || !found.Complete {
					t.Errorf("complete %v\n%s", found.Complete, diff)
				}
				if test.read > 0 && found.Scanned > test.read {
					t.Errorf("%d entries", found.Scanned)
				}
			}
		})
	}
}

// TestScanRacy reads a directory again that was just changed when it was read.
func TestScanRacy(t *testing.T) {
	dir := tempDir(t)
	put(t, dir+"/a/", "")
	c := &Cache{}
	first := Scan(dir, c, patient(100)).Scanned
	for _, d := range c.dirs {
		if d.state&dirRacy == 0 {
			t.Errorf("%q is trusted at once", d.path)
		}
	}
	if again := Scan(dir, c, patient(100)).Scanned; again <= first {
		t.Errorf("%d entries, then %d: nothing was read again", first, again)
	}
	old := stamp{modified: 100e9, changed: 100e9}
	if old.racy(102e9) || !old.racy(102e9-1) || !(stamp{modified: 1, changed: 100e9}).racy(101e9) || !(stamp{modified: 200e9, changed: 1}).racy(100e9) {
		t.Error("the bound is not two seconds")
	}
}

// TestScanHuge has one directory that is beyond the limit alone.
func TestScanHuge(t *testing.T) {
	dir := tempDir(t)
	for i := range 50 {
		put(t, fmt.Sprintf("%s/big/%03d", dir, i), "")
	}
	put(t, dir+"/small/.git", "")
	c := &Cache{}
	var found Found
	for range 6 {
		found = Scan(dir, c, patient(10))
	}
	if found.Complete || found.Stopped != dir+"/big" || !slices.Equal(names(t, dir, found), []string{"small"}) {
		t.Errorf("%+v", found)
	}
	if found := Scan(dir, &Cache{}, Limit{Entries: -1}); found.Complete || found.Scanned != 0 || found.Stopped != dir {
		t.Errorf("with nothing allowed: %+v", found)
	}
	if found := Scan(dir, &Cache{}, Limit{Time: -1}); found.Complete || found.Scanned != 0 {
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
	c := &Cache{}
	for range 2 {
		found := Scan(dir, c, patient(100))
		if diff := cmp.Diff(want, names(t, dir, found)); diff != "" || !found.Complete {
			t.Errorf("%+v\n%s", found, diff)
		}
		settle(t, c)
	}
	if err := os.Chmod(dir+"/closed", 0o700); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"closed/a", "open"}, names(t, dir, Scan(dir, c, patient(100)))); diff != "" {
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
		if found := Scan(root, nil, Limit{Time: time.Hour}); !found.Complete {
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
		if found := Scan(dir+"/"+name, nil, Limit{}); !found.Complete || len(found.Repositories) != 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestCacheFile(t *testing.T) {
	top, file := tempDir(t), tempDir(t)+"/cache"
	put(t, top+"/a/.git/", "")
	put(t, top+"/b/c/", "")
	c := &Cache{}
	Scan(top, c, patient(100))
	settle(t, c)
	c.indexes = map[string]indexRecord{"/x": {hash: 20, stamp: stamp{1, 2, 3, 4, 5}, names: []string{"sub", "other"}}}
	c.plain = map[string]plainRecord{"/y/.git": {{1, 2, 3, 4, 0}, {5, 6, 7, 8, 9}}, "/z/.git": {3: {1, 1, 1, 1, 1}}}
	if err := c.Save(file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if left, err := filepath.Glob(filepath.Dir(file) + "/.git-cache*"); len(left) != 0 || err != nil {
		t.Errorf("left behind: %q, %v", left, err)
	}
	back := LoadCache(file)
	options := cmp.AllowUnexported(Cache{}, dir{}, stamp{}, indexRecord{})
	mutex := cmpopts.IgnoreFields(Cache{}, "mu")
	if diff := cmp.Diff(c, back, options, mutex); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		broken := bytes.Clone(text)
		broken[i] ^= 0x10
		if _, ok := decodeCache(broken); ok {
			t.Errorf("byte %d is changed unnoticed", i)
		}
		if _, ok := decodeCache(text[:i]); ok {
			t.Errorf("%d bytes are a whole cache", i)
		}
	}
	if c := LoadCache(top); len(c.dirs) != 0 {
		t.Error("a directory is a cache")
	}
	if err := (&Cache{changed: true}).Save(top + "/missing/file"); err == nil {
		t.Error("saved into a missing directory")
	}
	var none *Cache
	if err := none.Save(top + "/missing/file"); err != nil {
		t.Error(err)
	}
}

// FuzzCache decodes bytes with a right checksum, and lets Scan use what comes out.
func FuzzCache(f *testing.F) {
	dir := f.TempDir()
	put(f, dir+"/a/.git/", "")
	put(f, dir+"/b/c/file", "")
	c := &Cache{}
	Scan(dir, c, patient(100))
	c.indexes = map[string]indexRecord{"/x": {hash: 20, names: []string{"sub"}}}
	whole := c.encode()
	f.Add(whole[len(cacheMark) : len(whole)-4])
	f.Add([]byte("\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		text := append([]byte(cacheMark), body...)
		text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, crc32.IEEETable))
		c, ok := decodeCache(text)
		if !ok {
			return
		}
		if again, ok := decodeCache(c.encode()); !ok || len(again.dirs) != len(c.dirs) {
			t.Errorf("it does not survive being written: %v", ok)
		}
		c.root = dir
		for _, path := range Scan(dir, c, patient(100)).Repositories {
			if !within(dir, path) {
				t.Errorf("found %q outside of %q", path, dir)
			}
		}
	})
}

// TestGitlinksRemembered changes an index that the cache remembers, with the same
// it.
func TestGitlinksRemembered(t *testing.T) {
	dir := tempDir(t)
	path := filepath.Join(dir, "index")
	put(t, path, string(indexBytes(2, 1, entryBytes(0o160000, "sub"))))
	read := func(c *Cache, want string) {
		t.Helper()
		names, err := c.gitlinks(path, sha1Size)
		if err != nil || !slices.Equal(names, []string{want}) {
			t.Errorf("names %q, %v, want %q", names, err, want)
		}
	}
	c := &Cache{}
	read(c, "sub")
	if len(c.indexes) != 0 {
		t.Fatal("an index that is younger than two seconds is trusted")
	}
	st, err := lstatStamp(path)
	if err != nil {
		t.Fatal(err)
	}
	c.indexes = map[string]indexRecord{path: {hash: sha1Size, stamp: st, names: []string{"remembered"}}}
	read(c, "remembered")
	read(nil, "sub")
	if names, err := c.gitlinks(path, sha256Size); err == nil {
		t.Errorf("other names of objects: %q", names)
	}
	c.indexes = map[string]indexRecord{path: {hash: sha1Size, stamp: st, names: []string{"remembered"}}}
	put(t, path, string(indexBytes(2, 2, entryBytes(0o160000, "sub"), entryBytes(0o100644, "file"))))
	read(c, "sub")
}

// TestCacheAtOnce: several runs of one workspace begin and end at the same time.
func TestCacheAtOnce(t *testing.T) {
	dir := t.TempDir()
	c := &Cache{}
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			Scan(dir, c, Limit{})
			_, _ = c.gitlinks(filepath.Join(dir, "index"), sha1Size)
			if err := c.Save(filepath.Join(dir, fmt.Sprint("cache", i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
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
