// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNotices: what is posted counts until it is withdrawn, or its owner is dead; what cannot be read
// counts as being about everything.
func TestNotices(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	all := func() []Notice {
		t.Helper()
		found, err := Notices(dir, Writers)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := all(); len(found) != 0 {
		t.Errorf("before the first one there are %+v", found)
	}
	n := Notice{Run: "r", PID: 7, Program: "a b", Paths: []string{"/w", "/with\nline\xff"},
		Closed: []string{"/w/x"}}
	posted, err := PublishNotice(dir, Writers, &n)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Notice{n}, all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if found, err := Notices(dir, Fixed); len(found) != 0 || err != nil {
		t.Errorf("on the other list: %+v, %v", found, err)
	}

	// What is damaged while its owner lives.
	for name, damage := range map[string]string{"cut": "run r\x00path /w\x00",
		"another word": "paths /w\x00end\x00", "no end": "end"} {
		if err := os.WriteFile(posted.path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if found := all(); len(found) != 1 || !found[0].Unknown || !found[0].Covers("/any") {
			t.Errorf("%s: %+v", name, found)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, string(Writers), "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if found := all(); len(found) != 2 || !found[0].Unknown || !found[1].Unknown {
		t.Errorf("with a directory: %+v", found)
	}
	posted.Withdraw()
	posted.Withdraw()
	if found := all(); len(found) != 1 {
		t.Errorf("withdrawn: %+v", found)
	}
	if err := os.Remove(filepath.Join(dir, string(Writers), "dir")); err != nil {
		t.Fatal(err)
	}

	// A killed owner has no lock; one that begins has no word yet.
	dead, begun := filepath.Join(dir, string(Writers), "dead"), filepath.Join(dir, string(Writers), "begun")
	for name, text := range map[string]string{dead: string(n.text()), begun: ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found := all(); len(found) != 0 {
		t.Errorf("nothing holds %+v", found)
	}
	if _, err := os.Lstat(dead); err == nil {
		t.Error("what a killed run has left stays")
	}
	if _, err := os.Lstat(begun); err != nil {
		t.Error("what a run begins to post was removed")
	}
	old := time.Now().Add(-2 * unlocked)
	if err := os.Chtimes(begun, old, old); err != nil {
		t.Fatal(err)
	}
	if _ = all(); !missing(begun) {
		t.Error("what a run that was killed began to post stays")
	}
}

func missing(name string) bool {
	_, err := os.Lstat(name)
	return err != nil
}

// TestCovers: the deepest place decides, and a name is not what begins with it.
func TestCovers(t *testing.T) {
	n := Notice{Paths: []string{"/w", "/w/ro/rw", "/file"}, Closed: []string{"/w/ro", "/w/x.sh"}}
	var got []string
	for _, path := range []string{"/w", "/w/a", "/w/ro", "/w/ro/a", "/w/ro/rw/a", "/w/x.sh", "/w/x.shell",
		"/wide", "/", "/file", "/file2"} {
		if n.Covers(path) {
			got = append(got, path)
		}
	}
	if want := []string{"/w", "/w/a", "/w/ro/rw/a", "/w/x.shell", "/file"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n := (&Notice{Paths: []string{"/"}}); !n.Covers("/any") || !n.Covers("/") {
		t.Error("the root has everything in it")
	}
	if new(Notice).Covers("/any") {
		t.Error("a notice of nothing")
	}
}

// BenchmarkNotice is what a start pays. Claim: at most 60 us.
func BenchmarkNotice(b *testing.B) {
	dir := b.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	n := Notice{Run: "r", PID: 7, Program: "a", Paths: []string{dir, "/var/tmp/x"},
		Closed: slices.Repeat([]string{dir + "/.git/some/where"}, 40)}
	for b.Loop() {
		p, err := PublishNotice(dir, Writers, &n)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Notices(dir, Fixed); err != nil {
			b.Fatal(err)
		}
		p.Withdraw()
	}
}
