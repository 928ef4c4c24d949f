// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCountEnds: counting what a command has written ends when it must, however much that is. While the
// command ran this blames no one, and the next look counts; after its end the free space decides.
func TestCountEnds(t *testing.T) {
	dir, over := t.TempDir(), make(chan struct{})
	close(over)
	const limit = 1 << 40
	for _, c := range []struct {
		name        string
		over        chan struct{}
		most        int64 // the free space at the start
		whole, last bool
	}{
		{"in time", nil, 1 << 59, true, false},
		{"late, and enough is free", over, limit / 2, false, false},
		{"late, and little is free", over, 1 << 59, false, true},
	} {
		d, err := newDiskWatch(limit, []string{dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.name), make([]byte, 1<<16), 0o600); err != nil {
			t.Fatal(err)
		}
		d.disks[0].most += c.most
		d.again = 1
		w := &watch{disk: d, over: c.over}
		if exceeded, _ := w.measureDisk(); exceeded || (d.counted >= 1<<16) != c.whole ||
			(d.again == 1) == c.whole {
			t.Errorf("%s: exceeded %v, counted %d, again at %d", c.name, exceeded, d.counted, d.again)
		}
		if exceeded := w.lastDisk(0, c.over); exceeded != c.last {
			t.Errorf("%s: at the end exceeded %v, want %v", c.name, exceeded, c.last)
		}
	}
}

// TestDeletedCounts: a file that was deleted counts while a process has it open.
func TestDeletedCounts(t *testing.T) {
	dir := t.TempDir()
	const size = 1 << 18
	d, err := newDiskWatch(size/2, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	d.disks[0].most += 1 << 59 // as if the space were missing
	for _, c := range []struct {
		processes func() []int
		want      bool
	}{{nil, false}, {func() []int { return []int{os.Getpid()} }, true}} {
		d.again = 1
		if exceeded, whole := d.exceeded(c.processes, 0, nil); exceeded != c.want || !whole {
			t.Errorf("with processes %v: exceeded %v, all was counted %v, counted %d", c.processes != nil,
				exceeded, whole, d.counted)
		}
	}
}

// TestDisksBelow: the disks that are mounted below a place are watched as well.
func TestDisksBelow(t *testing.T) {
	device := func(name string) uint64 {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			t.Fatal(err)
		}
		return st.Dev
	}
	d, err := newDiskWatch(1, []string{"/"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(d.disks, func(k disk) bool { return device(k.at) == device("/proc") }) {
		t.Errorf("disks %+v", d.disks)
	}
}

// TestSpaceFreedMeanwhile: what another program frees does not hide what the command has written.
func TestSpaceFreedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	const size = 1 << 18
	d, err := newDiskWatch(size/2, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	d.disks[0].most = 0 // as if more were free than at the start
	w := &watch{disk: d}
	for _, wrote := range []int64{0, size} {
		if exceeded := w.lastDisk(wrote, nil); exceeded != (wrote > 0) {
			t.Errorf("%d bytes written: exceeded %v", wrote, exceeded)
		}
	}
}
