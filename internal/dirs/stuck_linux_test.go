// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestStuck: what cannot be removed, here because something is mounted in it, does not delay
// the starts that follow.
func TestStuck(t *testing.T) {
	testenv.NeedRoot(t)
	home := hostfacts.RealPath(t.TempDir())
	t.Setenv("XDG_STATE_HOME", home)
	_, tmp, err := NewTmp()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tmp.Remove() }()
	all := home + "/sallyport/tmp/"
	if err := os.MkdirAll(all+"run-1/mount", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", all+"run-1/mount", "tmpfs", 0, "size=64k"); err != nil {
		testenv.Lack(t, testenv.UserNS, "nothing can be mounted: "+err.Error())
	}
	defer func() { _ = unix.Unmount(all+"stuck-1/mount", unix.MNT_DETACH) }()
	_, second, err := NewTmp()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Remove() }()
	if _, err := os.Lstat(all + "stuck-1/mount"); err != nil {
		t.Errorf("what cannot be removed has kept its name: %v", err)
	}
	if err := unix.Unmount(all+"stuck-1/mount", unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	if r := Clean(); len(r) != 1 || !slices.Equal(r[0].TmpDirs, []string{all + "stuck-1"}) {
		t.Errorf("%+v", r)
	}
}

// TestSweepEnds: what a start has no time to remove keeps its name, and is removed later.
func TestSweepEnds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	home := hostfacts.RealPath(t.TempDir())
	t.Setenv("XDG_STATE_HOME", home)
	at := home + "/sallyport/tmp"
	if err := os.MkdirAll(at+"/run-1/dir", 0o700); err != nil {
		t.Fatal(err)
	}
	all, err := os.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	late := make(chan struct{})
	close(late)
	var r Report
	if r.sweep(all, at, late); len(r.Failed) > 0 || len(r.TmpDirs) > 0 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Lstat(at + "/run-1/dir"); err != nil {
		t.Error(err)
	}
	if r := Clean(); len(r) != 1 || !slices.Equal(r[0].TmpDirs, []string{at + "/run-1"}) {
		t.Errorf("%+v", r)
	}
}
