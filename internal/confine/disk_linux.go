// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A diskWatch finds out whether folders have grown by more than a limit. A look at
// the free space of their file systems is cheap; it says when it is worth to count.
// What is counted are blocks of files that came into being or changed since the
// start, so what others write elsewhere on the disk is never blamed on a command.
type diskWatch struct {
	limit  int64
	places []string // no one in another
	since  unix.Timespec
	disks  []disk

	fell    int64 // how much less free space there is than there was, at the last look
	counted int64 // what was found at the last count
	again   int64 // how much it must have fallen for the next count
}

// A disk is one file system.
type disk struct {
	at   string
	most int64 // the most free space that was seen
}

// writable are the folders that a command may write to, each where the host has it.
func writable(pr *plan.Request) []string {
	var out []string
	for _, r := range pr.Rules {
		if pr.Tmp != nil && r.Path == pr.Tmp.At {
			continue // the private folder stands over it
		}
		if r.Level == sandbox.LevelWrite && r.Kind != plan.KindMissing && !r.Pin {
			out = append(out, r.Path)
		}
	}
	if pr.Tmp != nil {
		out = append(out, pr.Tmp.Source.Path)
	}
	for _, o := range pr.Overlays {
		out = append(out, o.Upper.Path)
	}
	return out
}

// newDiskWatch notes how things are now.
func newDiskWatch(limit int64, places []string) (*diskWatch, error) {
	d := &diskWatch{limit: limit}
	slices.Sort(places)
	for _, p := range slices.Compact(places) {
		if !slices.ContainsFunc(d.places, func(top string) bool { return p == top || hostfacts.Below(p, top) }) {
			d.places = append(d.places, p)
		}
	}
	// Times of files come from the same clock, which is a few milliseconds late.
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &d.since); err != nil {
		return nil, fmt.Errorf("the clock of files: %w", err)
	}
	known := make(map[string]bool)
	for _, p := range slices.Concat(d.places, mountsBelow(d.places)) {
		var st unix.Statfs_t
		var at unix.Stat_t
		if unix.Statfs(p, &st) != nil || unix.Stat(p, &at) != nil {
			continue
		}
		// Some file systems have no number of their own, and others have several
		// devices.
		id := fmt.Sprint(st.Fsid)
		if st.Fsid == (unix.Fsid{}) {
			id = fmt.Sprint("device ", at.Dev)
		}
		if known[id] {
			continue
		}
		known[id] = true
		d.disks = append(d.disks, disk{at: p, most: free(&st)})
	}
	d.again = max(limit/4, 1)
	return d, nil
}

// mountsBelow are the places in folders where something else is mounted.
func mountsBelow(folders []string) []string {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && !strings.Contains(f[4], `\`) &&
			slices.ContainsFunc(folders, func(top string) bool { return f[4] != top && hostfacts.Below(f[4], top) }) {
			out = append(out, f[4])
		}
	}
	return out
}

// free is the free space of a file system in bytes.
func free(st *unix.Statfs_t) int64 {
	size := st.Frsize
	if size == 0 {
		size = st.Bsize
	}
	const most = 1 << 60
	return int64(min(st.Bfree, most/uint64(max(size, 1)))) * size
}

// next is how long the folders take at least to reach the limit.
func (d *diskWatch) next() time.Duration {
	left := d.limit - d.fell
	if d.fell >= d.again {
		left = d.limit - d.counted
	}
	return until(left, diskRate)
}

// passed reports whether the limit was passed. tree returns the processes that may
// hold files without a name; nil when there are none left.
func (d *diskWatch) passed(tree func() []int) bool {
	d.fell = 0
	for i := range d.disks {
		k := &d.disks[i]
		var st unix.Statfs_t
		if unix.Statfs(k.at, &st) != nil {
			continue
		}
		now := free(&st)
		k.most = max(k.most, now) // others may free some
		d.fell += k.most - now
	}
	if d.fell < d.again {
		return false
	}
	c := count{since: d.since, enough: d.limit, known: make(map[[2]uint64]bool)}
	for _, p := range d.places {
		c.folder(p)
	}
	if tree != nil {
		for _, pid := range tree() {
			c.nameless(pid)
		}
	}
	d.counted = c.made + min(c.changed, max(d.fell-c.made, 0))
	d.again = d.fell + max((d.limit-d.counted)/2, d.limit/16, 1)
	switch {
	case d.counted > d.limit:
		return true
	case c.blind:
		return d.fell > d.limit
	}
	return false
}

// A count is one walk over the writable folders.
type count struct {
	since  unix.Timespec
	enough int64              // a walk ends when made is more
	known  map[[2]uint64]bool // files with several names, by device and inode
	// made are the bytes of files that came into being since, changed those of files
	// that were there before, which may have grown by less.
	made, changed int64
	blind         bool // not everything could be looked at
}

// deepest folder that is counted; each takes a descriptor.
const deepestCounted = 256

// folder counts what is below a path, which is one of the policy's.
func (c *count) folder(name string) {
	var st unix.Statx_t
	if c.stat(unix.AT_FDCWD, name, &st) && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		c.walk(unix.AT_FDCWD, name, 0)
	}
}

// walk counts what is in a folder, through no symbolic link: the command may put
// some there meanwhile.
func (c *count) walk(dir int, name string, depth int) {
	if depth > deepestCounted {
		c.blind = true
		return
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		c.blind = c.blind || !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP)
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	const atOnce = 512
	for c.made <= c.enough {
		names, err := f.Readdirnames(atOnce)
		for _, n := range names {
			var st unix.Statx_t
			if c.stat(fd, n, &st) && st.Mode&unix.S_IFMT == unix.S_IFDIR {
				c.walk(fd, n, depth+1)
			}
		}
		if err != nil {
			return // the end; a folder that is removed under us has nothing left
		}
	}
}

// stat counts one file and reports whether there is one.
func (c *count) stat(dir int, name string, st *unix.Statx_t) bool {
	const mask = unix.STATX_MODE | unix.STATX_BLOCKS | unix.STATX_CTIME | unix.STATX_BTIME | unix.STATX_NLINK | unix.STATX_INO
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, mask, st)
	if err != nil {
		c.blind = c.blind || !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR)
		return false
	}
	c.add(st)
	return true
}

func (c *count) add(st *unix.Statx_t) {
	if !c.after(st.Ctime) {
		return
	}
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		id := [2]uint64{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino}
		if c.known[id] {
			return
		}
		c.known[id] = true
	}
	const block = 512 // whatever the file system's own (statx(2))
	if st.Mask&unix.STATX_BTIME != 0 && c.after(st.Btime) {
		c.made += int64(st.Blocks) * block
	} else {
		c.changed += int64(st.Blocks) * block
	}
}

// after reports whether a time is not before the start.
func (c *count) after(t unix.StatxTimestamp) bool {
	return t.Sec > c.since.Sec || t.Sec == c.since.Sec && int64(t.Nsec) >= c.since.Nsec
}

// nameless counts files that a process holds open and that have no name any more.
func (c *count) nameless(pid int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it has ended, or is closed to us
	}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if to, err := os.Readlink(at); err != nil || !strings.HasSuffix(to, " (deleted)") || strings.HasPrefix(to, "/memfd:") {
			continue
		}
		var st unix.Statx_t
		if unix.Statx(unix.AT_FDCWD, at, 0, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 0 {
			continue
		}
		id := [2]uint64{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino}
		if !c.known[id] {
			c.known[id] = true
			c.add(&st)
		}
	}
}
