// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestScansFollowNoLink: what is known of searches is saved in the state directory, and not in
// what has taken its place.
func TestScansFollowNoLink(t *testing.T) {
	root := t.TempDir()
	for _, linked := range []bool{false, true} {
		state := filepath.Join(t.TempDir(), "state")
		s := &Scans{State: state}
		if linked {
			state = filepath.Join(t.TempDir(), "outside")
			if err := os.Symlink(state, s.State); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(state, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := s.match(root, "key", func(string, fs.FileMode) (keep, enter bool) { return false, true },
			0); err != nil {
			t.Error(err)
		}
		if saved, _ := filepath.Glob(filepath.Join(state, "scans", "*")); (len(saved) == 1) == linked {
			t.Errorf("linked %v: saved %q", linked, saved)
		}
	}
}

// TestScansAreBounded: what is remembered on disk does not grow with each new search, and the
// newest is kept.
func TestScansAreBounded(t *testing.T) {
	root, s := t.TempDir(), &Scans{State: filepath.Join(t.TempDir(), "state")}
	secret := filepath.Join(root, "x.env")
	if err := errors.Join(os.Mkdir(s.State, 0o700), os.WriteFile(secret, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	want := func(path string, _ fs.FileMode) (keep, enter bool) { return path == "x.env", true }
	for i := range maxFiles + 20 {
		if found, err := s.match(root, strconv.Itoa(i), want, 0); err != nil || len(found) != 1 {
			t.Fatalf("%d: %q, %v", i, found, err)
		}
	}
	saved, err := os.ReadDir(filepath.Join(s.State, "scans"))
	if err != nil || len(saved) != maxFiles {
		t.Errorf("%d files, %v", len(saved), err)
	}
	last := strconv.Itoa(maxFiles + 19)
	s.file("matches\x00"+last, func(name string) {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("the last search was not kept: %v", err)
		}
	})
	if len(s.matches) > maxSearches {
		t.Errorf("%d searches in memory", len(s.matches))
	}
}

// TestFirst: a subject is the first one once, also for another process, and always where nothing can be
// remembered.
func TestFirst(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false} {
		if got := (&Scans{State: state}).first("a"); got != want {
			t.Errorf("%d: %v", i, got)
		}
	}
	for range 2 {
		if !(&Scans{State: filepath.Join(state, "missing")}).first("a") || !(*Scans)(nil).first("a") {
			t.Error("it is remembered nowhere, and is not the first")
		}
	}
	if !(&Scans{State: state}).first("b") {
		t.Error("another subject is not the first")
	}
}
