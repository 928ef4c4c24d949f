// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// fill makes directories with a hundred files each.
func fill(t *testing.T, dir string, directories int) {
	t.Helper()
	for i := range directories {
		sub := filepath.Join(dir, fmt.Sprintf("d%02d", i/50), fmt.Sprintf("e%02d", i%50))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		for j := range 100 {
			if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%02d", j)), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestBigWorkspace runs commands in a workspace of 60 000 entries: the user is told once that
// not all repositories are known, the search goes on from run to run until they are, and then
// nothing is said until more has changed than one start can read.
func TestBigWorkspace(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newSeat(t)
	if dir, err := os.MkdirTemp("/dev/shm", "sallyport-test-"); err == nil { // a disk would only take longer
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		s.work = dir
	}
	fill(t, filepath.Join(s.work, "a"), 600)
	// run runs a command that does nothing, until the last repository is protected, and
	// returns how often a warning was printed.
	run := func(work string) (warnings int) {
		git := filepath.Join(work, ".git")
		if err := os.MkdirAll(git, 0o755); err != nil {
			t.Fatal(err)
		}
		for range 150 {
			out, err := s.command(t, "sallyport", "run", "-v", "--", "true").CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if strings.Contains(string(out), "too many directories") {
				warnings++
				t.Logf("%s", out)
			}
			if strings.Contains(string(out), " "+git) {
				return warnings
			}
		}
		t.Errorf("%s was not found", git)
		return warnings
	}
	last := func(dir string) string { return filepath.Join(s.work, dir, "d11", "e49", "deep", "work") }
	if n := run(last("a")); n != 1 {
		t.Errorf("%d warnings at first, want 1", n)
	}
	known := 1
	for range 5 { // a start on a busy machine may not come to the end of what is known
		if known = run(last("a")); known == 0 {
			break
		}
	}
	if known != 0 {
		t.Errorf("%d warnings when everything is known", known)
	}
	fill(t, filepath.Join(s.work, "b"), 600)
	if n := run(last("b")); n != 1 {
		t.Errorf("%d warnings after a change beyond the bound, want 1", n)
	}
	out, err := s.command(t, "sallyport", "run", "--", "sh", "-c", "echo x >"+last("b")+"/.git/config").CombinedOutput()
	if err == nil {
		t.Errorf("a repository that was found can be changed: %s", out)
	}
}
