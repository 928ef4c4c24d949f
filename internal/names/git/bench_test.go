// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package git

import (
	"io/fs"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func BenchmarkProtectedPlain(b *testing.B) {
	dir := tempDir(b)
	plainRepository(b, dir)
	o := Surroundings(func(name string) (string, bool) { return dir, name == "HOME" })
	for b.Loop() {
		r, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Protected(o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	dir := tempDir(b)
	manyDirs(b, dir)
	for b.Loop() {
		if found := Scan(dir, Limit{Time: time.Minute}); !found.Complete || len(found.Repositories) != 50 {
			b.Fatalf("%d repositories, complete %v at %s", len(found.Repositories), found.Complete,
				found.Stopped)
		}
	}
}

// manyDirs makes 2000 directories with a few files each; 50 of them are repositories.
func manyDirs(b testing.TB, dir string) {
	b.Helper()
	for i := range 20 {
		for j := range 10 {
			for k := range 10 {
				inside := filepath.Join(dir, "top"+strconv.Itoa(i), "middle"+strconv.Itoa(j), "leaf"+
					strconv.Itoa(k))
				put(b, inside+"/", "")
				for n := range 3 {
					put(b, filepath.Join(inside, "file"+strconv.Itoa(n)), "")
				}
				if k == 0 && (i*10+j)%4 == 0 {
					put(b, inside+"/.git/", "")
				}
			}
		}
	}
}

// BenchmarkMatchAgain searches 18 000 directories, of which nothing has changed, as another
// process does.
func BenchmarkMatchAgain(b *testing.B) {
	dir, file := tempDir(b), filepath.Join(tempDir(b), "matches")
	for i := range 18_000 {
		put(b, filepath.Join(dir, strconv.Itoa(i/600), strconv.Itoa(i/20%30), strconv.Itoa(i))+"/", "")
	}
	want := func(path string,
		kind fs.FileMode) (keep, enter bool) {
		return filepath.Base(path) == ".env", true
	}
	m := &Matches{}
	if _, err := Match(dir, "key", m, want, 0); err != nil {
		b.Fatal(err)
	}
	settleMatches(b, dir, m)
	if err := m.Save(file); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := Match(dir, "key", LoadMatches(file), want, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// settleMatches makes matches trust directories as they will when two seconds have passed.
func settleMatches(t testing.TB, root string, m *Matches) {
	t.Helper()
	for i := range m.dirs {
		var err error
		if m.dirs[i].stamp, err = lstatStamp(filepath.Join(root, m.dirs[i].path)); err != nil {
			t.Fatal(err)
		}
	}
}
