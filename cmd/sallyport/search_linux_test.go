// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/names/git"
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

// TestBigWorkspace runs commands in a workspace with more entries than a search reads, whatever the speed of
// the machine: the first one says that not all repositories are known, the others are quiet, and the observer
// guards those that no search has found.
func TestBigWorkspace(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	if dir, err := os.MkdirTemp("/dev/shm", "sallyport-test-"); err == nil { // a disk would only take longer
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		s.work = dir
	}
	fill(t, filepath.Join(s.work, "a"), git.DefaultEntries/100+10)
	far := filepath.Join(s.work, "a", "d00", "e00", "deep") // is entered after all directories with files
	for _, name := range []string{"work/.git/hooks/h", "bare/HEAD", "bare/config", "bare/objects/o",
		"bare/refs/r", "bare/hooks/h"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(far, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(far, name), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(script string) (string, error) {
		cmd := s.command(t, "sallyport", "run", "--", "sh", "-c", script)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("true"); err != nil || strings.Count(out, "too many directories") != 1 {
		t.Errorf("the first run: %v: %s", err, out)
	}
	if out, err := run("echo x >a/d00/e00/f01 && mv a/d00/e00/f01 a/d00/e00/f && rm a/d00/e00/f"); err != nil || out != "" {
		t.Errorf("ordinary work: %v: %s", err, out)
	}
	before := listing(t, far)
	for _, script := range []string{
		"echo x >work/.git/config", "echo x >work/.git/hooks/h", "rm work/.git/hooks/h",
		"mv work/.git work/git",
		"echo x >bare/config", "echo x >bare/hooks/new", "echo x >bare/hooks/h", "rm bare/HEAD",
		"mv bare/hooks bare/other", "chmod 755 bare/hooks/h",
		"ln -s /etc bare/worktrees", "cd bare && echo x >config", "cd bare/hooks && echo x >>h",
		"mv bare moved && echo x >moved/config; mv moved bare; exit 1",
	} {
		if out, err := run("cd " + far + " && " + script); err == nil {
			t.Errorf("%s: succeeds: %s", script, out)
		}
	}
	after := listing(t, far)
	delete(before, far) // moving in it is allowed
	delete(after, far)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("a repository that was not found was changed (-before +after):\n%s", diff)
	}
	out, err := run("mkdir -p new/.git && echo mine >new/.git/config && cat new/.git/config && mkdir -p own/objects own/refs && echo x >own/HEAD && echo mine >own/config && cat own/config")
	if err != nil || strings.Count(out, "mine") != 2 {
		t.Errorf("its own repositories: %v: %s", err, out)
	}
}
