// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package git

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestScanStops goes on without a bound, can be stopped at any moment, loses nothing that was
// known, and comes to an end. A directory that was just read is known, and read again.
func TestScanStops(t *testing.T) {
	dir := tempDir(t)
	for i := range 60 {
		put(t, fmt.Sprintf("%s/d%02d/e/f/", dir, i), "")
	}
	put(t, dir+"/d59/e/f/.git/HEAD", "")
	for i := range 700 { // more than the names between two questions
		put(t, fmt.Sprintf("%s/d00/e/big/%03d", dir, i), "")
	}
	c, last := &Cache{}, 0
	for round := 0; ; round++ {
		calls := 0
		found := Scan(dir, c, Limit{Stop: func() bool { calls++; return calls > 8 }})
		if len(c.dirs) < last {
			t.Fatalf("%d directories, and %d before", len(c.dirs), last)
		}
		if last = len(c.dirs); found.Known {
			if !slices.Equal(names(t, dir, found), []string{"d59/e/f"}) {
				t.Errorf("found %q", found.Repositories)
			}
			break
		}
		if found.Complete || round > 100 {
			t.Fatalf("round %d: complete %v, known %v", round, found.Complete, found.Known)
		}
	}
	never := func() bool { return false }
	if found := Scan(dir, c, Limit{Stop: never}); !found.Complete || !found.Known || found.Read < 700 {
		t.Errorf("complete %v, known %v, %d names read", found.Complete, found.Known, found.Read)
	}
	settle(t, c)
	if found := Scan(dir, c, Limit{Stop: never}); !found.Complete || found.Read != 0 {
		t.Errorf("complete %v, %d names read", found.Complete, found.Read)
	}
	// What a bounded search did not read whole is read whole without a bound.
	c = &Cache{}
	for range 20 {
		Scan(filepath.Join(dir, "d00/e/big"), c, patient(10))
	}
	if found := Scan(filepath.Join(dir, "d00/e/big"), c, Limit{Stop: never}); !found.Known {
		t.Error("a directory with many names is not known")
	}
}

// TestScanKnown: directories that were read and have changed since are not known, those that
// were just read are.
func TestScanKnown(t *testing.T) {
	dir := tempDir(t)
	for i := range 40 {
		put(t, fmt.Sprintf("%s/d%02d/", dir, i), "")
	}
	c := &Cache{}
	if found := Scan(dir, c, patient(1000)); !found.Known {
		t.Fatal("it is not known")
	}
	if found := Scan(dir, c, patient(50)); found.Complete || !found.Known {
		t.Errorf("read again in part: complete %v, known %v", found.Complete, found.Known)
	}
	settle(t, c)
	for i := range 40 {
		put(t, fmt.Sprintf("%s/d%02d/new/", dir, i), "")
	}
	if found := Scan(dir, c, patient(50)); found.Complete || found.Known {
		t.Errorf("changed: complete %v, known %v", found.Complete, found.Known)
	}
}

// TestWarned: what a user was told is remembered with the rest.
func TestWarned(t *testing.T) {
	file := filepath.Join(tempDir(t), "cache")
	c := LoadCache(file)
	for _, warned := range []bool{true, false, true} {
		if c.Warned() == warned {
			t.Fatalf("warned %v", !warned)
		}
		c.Warn(warned)
		if err := c.Save(file); err != nil {
			t.Fatal(err)
		}
		if c = LoadCache(file); c.Warned() != warned {
			t.Errorf("read back: warned %v", !warned)
		}
	}
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
	c := &Cache{}
	found := Scan(dir, c, patient(100_000))
	if !slices.Equal(names(t, dir, found), []string{"disk/sub"}) || !found.Complete {
		t.Errorf("found %q, complete %v", found.Repositories, found.Complete)
	}
	for _, d := range c.dirs {
		if strings.HasPrefix(d.path, "proc/") {
			t.Fatalf("%s was found", d.path)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "proc", "self")); err != nil {
		t.Errorf("nothing is mounted: %v", err)
	}
}
