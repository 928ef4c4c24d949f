// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package git

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// secrets keeps names that end in .env, and enters what it does not keep.
func secrets(path string, _ fs.FileMode) (keep, enter bool) {
	keep = strings.HasSuffix(path, ".env")
	return keep, !keep
}

// walked is what Match has to find: by another walk.
func walked(t *testing.T, root string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".env") {
			below, relErr := filepath.Rel(root, name)
			if out = append(out, below); d.IsDir() {
				return fs.SkipDir
			}
			return relErr
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// matchAgain searches with matches that are trusted as those of two seconds ago are, after
// change, as another process does.
func matchAgain(t *testing.T, root string, m *Matches, change func()) *Matches {
	t.Helper()
	file := filepath.Join(t.TempDir(), "matches")
	if _, err := Match(root, "key", m, secrets, 0); err != nil {
		t.Fatal(err)
	}
	settleMatches(t, root, m)
	m.changed = true
	if err := m.Save(file); err != nil {
		t.Fatal(err)
	}
	change()
	m = LoadMatches(file)
	if m.key != "key" {
		t.Fatal("nothing was loaded")
	}
	found, err := Match(root, "key", m, secrets, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(walked(t, root), found); diff != "" {
		t.Fatalf("(-there +found)\n%s", diff)
	}
	return m
}

// TestMatchChanges: nothing that appeared since the last search is missed, whatever hides it.
func TestMatchChanges(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	changes := map[string]func(t *testing.T, dir string){
		"nothing": func(*testing.T, string) {},
		"a file":  func(t *testing.T, dir string) { put(t, dir+"/a/b/new.env", "") },
		"the time of the directory set back": func(t *testing.T, dir string) {
			info, err := os.Stat(dir + "/a/b")
			must(t, err)
			put(t, dir+"/a/b/new.env", "")
			must(t, os.Chtimes(dir+"/a/b", info.ModTime(), info.ModTime()))
			if after, err := os.Stat(dir + "/a/b"); err != nil || !after.ModTime().Equal(info.ModTime()) {
				t.Fatalf("the time was not set back: %v", err)
			}
		},
		"a directory":           func(t *testing.T, dir string) { put(t, dir+"/n/e/w/new.env", "") },
		"a directory that fits": func(t *testing.T, dir string) { put(t, dir+"/a/dir.env/in.env", "") },
		"a removal":             func(t *testing.T, dir string) { must(t, os.Remove(dir+"/a/b/old.env")) },
		"a directory removed":   func(t *testing.T, dir string) { must(t, os.RemoveAll(dir+"/a")) },
		"a directory moved":     func(t *testing.T, dir string) { must(t, os.Rename(dir+"/a/b", dir+"/x/b")) },
		"two exchanged": func(t *testing.T, dir string) {
			must(t, unix.Renameat2(unix.AT_FDCWD, dir+"/a", unix.AT_FDCWD, dir+"/x", unix.RENAME_EXCHANGE))
		},
		"one made anew": func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir+"/a/b"))
			put(t, dir+"/a/b/other.env", "")
		},
		"a link in the place of a directory": func(t *testing.T, dir string) {
			must(t, os.Rename(dir+"/a", dir+"/x/moved"))
			must(t, os.Symlink("x/moved", dir+"/a"))
		},
		"a file in the place of a directory": func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir+"/a/b"))
			put(t, dir+"/a/b", "")
		},
		"the root made anew": func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			put(t, dir+"/a/b/new.env", "")
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(tempDir(t), "root")
			for _, file := range []string{"/top.env", "/a/b/old.env", "/a/b/file", "/x/y/z/"} {
				put(t, dir+file, "")
			}
			matchAgain(t, dir, &Matches{}, func() { change(t, dir) })
		})
	}
}

// TestMatchRandom makes random changes, and compares with a walk each time.
func TestMatchRandom(t *testing.T) {
	dir := tempDir(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	name := func() string {
		path := dir
		for range 1 + r.IntN(4) {
			path = filepath.Join(path, []string{"a", "b", "c", "d.env"}[r.IntN(4)])
		}
		return path
	}
	m := &Matches{}
	for range 150 {
		m = matchAgain(t, dir, m, func() {
			for range 3 { // errors are as good as no change
				switch r.IntN(5) {
				case 0, 1:
					_ = os.MkdirAll(name(), 0o755)
				case 2:
					_ = os.WriteFile(name(), nil, 0o644)
				case 3:
					_ = os.RemoveAll(name())
				case 4:
					_ = os.Rename(name(), name())
				}
			}
		})
	}
}

// ownMounts gives the test mounts of its own, which end with it.
func ownMounts(t *testing.T) {
	t.Helper()
	testenv.NeedRoot(t)
	runtime.LockOSThread() // and never unlocked: the thread ends with its mounts
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
}

// TestMatchMounts finds what a mount shows over a directory that has not changed.
func TestMatchMounts(t *testing.T) {
	ownMounts(t)
	dir := tempDir(t)
	put(t, dir+"/a/b/c/", "")
	put(t, dir+"/x/b/x.env", "")
	m := matchAgain(t, dir, &Matches{}, func() {
		if err := unix.Mount("tmpfs", dir+"/a", "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		put(t, dir+"/a/b/new.env", "")
	})
	m = matchAgain(t, dir, m, func() {
		if err := unix.Unmount(dir+"/a", 0); err != nil {
			t.Fatal(err)
		}
	})
	matchAgain(t, dir, m, func() {
		if err := unix.Mount(dir+"/x", dir+"/a", "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	})
	if err := unix.Unmount(dir+"/a", 0); err != nil {
		t.Fatal(err)
	}
}

// TestMatchTrust: what was just written, and what a file system says that can say anything, is
// read again each time.
func TestMatchTrust(t *testing.T) {
	dir := tempDir(t)
	put(t, dir+"/a/", "")
	m := &Matches{}
	if _, err := Match(dir, "key", m, secrets, 0); err != nil {
		t.Fatal(err)
	}
	for _, d := range m.dirs {
		if d.stamp != noStamp {
			t.Errorf("%q is trusted at once", d.path)
		}
	}
	at, err := openTree("/")
	if err != nil {
		t.Fatal(err)
	}
	defer at.close()
	if at.keepsTimes("proc") || at.keepsTimes("no/such/directory") {
		t.Error("times of /proc are trusted")
	}
	settleMatches(t, dir, m)
	m.dirs[0].names = []string{"false.env"}
	if found, err := Match(dir, "key", m, secrets, 0); err != nil || len(found) != 1 {
		t.Errorf("read again although nothing has changed: %q, %v", found, err)
	}
	if found, err := Match(dir, "other key", m, secrets, 0); err != nil || len(found) != 0 {
		t.Errorf("another search has found %q, %v", found, err)
	}
}

// TestMatchBounds: too many matches, a root that is missing or no directory, links.
func TestMatchBounds(t *testing.T) {
	dir := tempDir(t)
	for i := range 20 {
		put(t, fmt.Sprintf("%s/d/%02d.env", dir, i), "")
	}
	m := &Matches{}
	for _, most := range []int{19, 3} {
		if found, err := Match(dir, "key", m, secrets, most); !errors.Is(err, ErrTooMany) || found != nil ||
			len(m.dirs) > 0 {
			t.Errorf("%d: %q, %v", most, found, err)
		}
	}
	if found, err := Match(dir, "key", m, secrets, 20); err != nil || len(found) != 20 {
		t.Errorf("%q, %v", found, err)
	}
	for _, root := range []string{dir + "/none", dir + "/d/00.env", dir + "/d/00.env/none"} {
		if found, err := Match(root, "key", nil, secrets, 0); err != nil || found != nil {
			t.Errorf("%s: %q, %v", root, found, err)
		}
	}
	if err := os.Symlink("d", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if found, err := Match(dir+"/link", "key", nil, secrets, 0); err == nil {
		t.Errorf("a link was followed: %q", found)
	}
}

// TestMatchesDamaged: a file that is not whole is no memory.
func TestMatchesDamaged(t *testing.T) {
	dir, file := tempDir(t), filepath.Join(tempDir(t), "matches")
	put(t, dir+"/a/x.env", "")
	m := &Matches{}
	if _, err := Match(dir, "key", m, secrets, 0); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(LoadMatches(file).dirs) != 2 {
		t.Fatal("the whole file is not read")
	}
	for i := range text {
		bad := slices.Clone(text)
		bad[i] ^= 0x21
		for _, damaged := range [][]byte{bad, text[:i]} {
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if m := LoadMatches(file); m.key != "" || len(m.dirs) > 0 {
				t.Fatalf("damaged at %d: %+v", i, m)
			}
		}
	}
}
