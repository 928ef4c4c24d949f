// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package state

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// TestClean: directories without an owner are removed, also when their command has
// closed them; those with one stay, and so does what is no directory.
func TestClean(t *testing.T) {
	testenv.RunAsOrdinary(t)
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home)
	state := hostfacts.RealPath(home) + "/sallyport"
	if err := ownDir(state); err != nil {
		t.Fatal(err)
	}
	held, err := makeTmp(state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Remove() })
	all := state + "/tmp/"
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.Mkdir(all+"run-1", 0o700), os.Mkdir(all+"run-1/in", 0o700), os.WriteFile(all+"run-1/in/file", nil, 0o600), os.Chmod(all+"run-1/in", 0),
		os.Mkdir(all+"run-2", 0),
		os.Mkdir(outside, 0o700), os.Symlink(outside, all+"link"), os.WriteFile(all+"note", nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []Report{{
		State:   state,
		TmpDirs: []string{all + "run-1", all + "run-2"},
		Report: guard.Report{
			Held:    []guard.Held{{Path: held.Path, Holders: 1}},
			Unknown: []guard.Left{{Path: all + "link", Why: "not a directory"}, {Path: all + "note", Why: "not a directory"}},
		},
	}}
	if diff := cmp.Diff(want, Clean()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{outside, held.Path, all + "note"} {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(all + "run-2"); err == nil {
		t.Error("a directory that was closed is still there")
	}
}
