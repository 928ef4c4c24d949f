// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
)

// diskWatch finds out whether directories have grown by more than a limit. Comparing the
// free space of their file systems is cheap and says when counting is worth it. Counted
// are the blocks of files that were created or changed since the start, so what other
// programs write elsewhere on the disk is not charged to the command.
type diskWatch struct {
	limit  int64
	places []string // no one in another
	hung   []string // mounts in them that do not answer: they are read-only, and not counted
	since  unix.Timespec
	disks  []disk

	fell    int64 // by how much the free space was less at the last look
	counted int64 // the result of the last count
	again   int64 // how much the free space must have fallen for the next count
}

// disk is one file system.
type disk struct {
	at   string
	most int64 // the most free space that was seen
}

// newDiskWatch notes the present state of directories.
func newDiskWatch(limit int64, places []string) (*diskWatch, error) {
	d := &diskWatch{limit: limit, again: max(limit/4, 1)}
	for _, p := range slices.Sorted(slices.Values(places)) {
		if !slices.ContainsFunc(d.places, func(top string) bool { return hostfacts.Below(p, top) }) {
			d.places = append(d.places, p)
		}
	}
	// The clock of file times, which is a few milliseconds late.
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &d.since); err != nil {
		return nil, fmt.Errorf("reading the clock of file times: %w", err)
	}
	known := make(map[string]bool)
	mounts := hostfacts.ParseMounts(read("/proc/self", "mountinfo"))
	table := hostfacts.NewMountTable(mounts)
	for _, p := range d.places {
		d.hung = append(d.hung, table.Hung(p)...)
	}
	for _, p := range slices.Concat(d.places, mountsBelow(mounts, d.places)) {
		if slices.ContainsFunc(d.hung, func(at string) bool { return hostfacts.Below(p, at) }) {
			continue
		}
		var st unix.Statfs_t
		var at unix.Stat_t
		if unix.Statfs(p, &st) != nil || unix.Stat(p, &at) != nil {
			continue
		}
		// Some file systems have no ID, and some have several devices.
		id := fmt.Sprint(st.Fsid)
		if st.Fsid == (unix.Fsid{}) {
			id = fmt.Sprint("device ", at.Dev)
		}
		if !known[id] {
			known[id] = true
			d.disks = append(d.disks, disk{at: p, most: free(&st)})
		}
	}
	return d, nil
}

// mountsBelow returns the mount points inside directories.
func mountsBelow(mounts []hostfacts.Mount, dirs []string) []string {
	var out []string
	for _, m := range mounts {
		if slices.ContainsFunc(dirs, func(top string) bool {
			return m.Point != top &&
				hostfacts.Below(m.Point, top)
		}) {
			out = append(out, m.Point)
		}
	}
	return out
}

// free returns the free space of a file system in bytes.
func free(st *unix.Statfs_t) int64 {
	size := st.Frsize
	if size == 0 {
		size = st.Bsize
	}
	const most = 1 << 60
	return int64(min(st.Bfree, most/uint64(max(size, 1)))) * size
}

// next returns how long the directories take at least to reach the limit.
func (d *diskWatch) next() time.Duration {
	left := d.limit - d.fell
	if d.fell >= d.again {
		left = d.limit - d.counted
	}
	return until(left, diskRate)
}

// exceeded returns whether the limit was exceeded, and whether all was counted: counting ends when
// over is closed. processes returns the IDs of processes that may have deleted files open; nil when
// none is left. wrote is how much the tree has written to disks as far as is known: another program may
// have freed the space meanwhile.
func (d *diskWatch) exceeded(processes func() []int, wrote int64, over <-chan struct{}) (_, whole bool) {
	d.fell = 0
	for i := range d.disks {
		k := &d.disks[i]
		var st unix.Statfs_t
		if unix.Statfs(k.at, &st) != nil {
			continue
		}
		now := free(&st)
		k.most = max(k.most, now) // other programs may free space
		d.fell += k.most - now
	}
	if d.fell < d.again && wrote <= d.limit {
		return false, true
	}
	c := count{since: d.since, enough: d.limit, over: over, skip: d.hung, known: make(map[[2]uint64]bool)}
	for _, p := range d.places {
		c.directory(p)
	}
	if processes != nil {
		for _, pid := range processes() {
			c.deleted(pid)
		}
	}
	d.counted = c.made + min(c.changed, max(d.fell-c.made, 0))
	if !c.cut {
		d.again = d.fell + max((d.limit-d.counted)/2, d.limit/16, 1)
	}
	return d.counted > d.limit || c.blind && d.fell > d.limit, !c.cut
}

// count is one walk over the writable directories.
type count struct {
	since  unix.Timespec
	enough int64              // a walk ends when made is more
	known  map[[2]uint64]bool // counted files with several names or none, by device and inode
	// made is the size of files that were created since, changed that of older files,
	// which may have grown by less.
	made, changed int64
	blind         bool // a directory or file could not be examined
	cut           bool // over was closed before the end
	over          <-chan struct{}
	skip          []string // directories that are not looked at
}

// deepestCounted is the depth down to which directories are counted. Each level takes a
// descriptor.
const deepestCounted = 256

// directory counts the files below a path of the policy.
func (c *count) directory(name string) {
	var st unix.Statx_t
	if c.stat(unix.AT_FDCWD, name, &st) && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		c.walk(unix.AT_FDCWD, name, name, 0)
	}
}

// walk counts the files in a directory. It follows no symbolic link, because the command
// may create some meanwhile. At is its path.
func (c *count) walk(dir int, name, at string, depth int) {
	if depth > deepestCounted {
		c.blind = true
		return
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		c.blind = c.blind || !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) &&
			!errors.Is(err, unix.ELOOP)
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	const atOnce = 512
	for c.made <= c.enough && !c.late() {
		names, err := f.Readdirnames(atOnce)
		for _, n := range names {
			below := ""
			if len(c.skip) > 0 {
				if below = filepath.Join(at, n); slices.Contains(c.skip, below) {
					continue
				}
			}
			var st unix.Statx_t
			if c.stat(fd, n, &st) && st.Mode&unix.S_IFMT == unix.S_IFDIR {
				c.walk(fd, n, below, depth+1)
			}
		}
		if err != nil {
			return // the end, also of a directory that was removed meanwhile
		}
	}
}

// late reports whether counting has to end.
func (c *count) late() bool {
	select {
	case <-c.over:
		c.cut = true
	default:
	}
	return c.cut
}

// stat counts one file and returns whether it exists.
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

// add counts a file that changed since the start. Files with several names, or deleted ones
// that several processes have open, count once.
func (c *count) add(st *unix.Statx_t) {
	if !c.after(st.Ctime) {
		return
	}
	if st.Nlink != 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		id := [2]uint64{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino}
		if c.known[id] {
			return
		}
		c.known[id] = true
	}
	if st.Mask&unix.STATX_BTIME != 0 && c.after(st.Btime) {
		c.made += int64(st.Blocks) * statBlock
	} else {
		c.changed += int64(st.Blocks) * statBlock
	}
}

// after returns whether a time is not before the start.
func (c *count) after(t unix.StatxTimestamp) bool {
	return t.Sec > c.since.Sec || t.Sec == c.since.Sec && int64(t.Nsec) >= c.since.Nsec
}

// statBlock is the unit of blocks of every file system (statx(2)).
const statBlock = 512

// deleted counts deleted files that a process has open or mapped. Which file is mapped only the
// system's root can see (proc_pid_map_files(5)); for others the free space decides then.
func (c *count) deleted(pid int) {
	openFiles(pid, func(at, to string) {
		if strings.HasSuffix(to, deletedMark) && !strings.HasPrefix(to, "/memfd:") {
			_ = c.unnamed(at)
		}
	})
	maps := readProc(pid, "maps")
	if !strings.Contains(maps, deletedMark) {
		return
	}
	for line := range strings.Lines(maps) {
		const name = 5 // START-END FLAGS OFFSET DEVICE INODE NAME
		f := strings.Fields(line)
		if len(f) <= name || !strings.HasSuffix(line, deletedMark+"\n") || inMemory(f[name]) {
			continue
		}
		err := c.unnamed(fmt.Sprintf("/proc/%d/map_files/%s", pid, f[0]))
		c.blind = c.blind || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	}
}

// deletedMark ends the name of a deleted file in /proc.
const deletedMark = " (deleted)"

// inMemory reports whether a name in /proc/PID/maps is of a deleted file that no disk holds.
func inMemory(name string) bool {
	return slices.ContainsFunc([]string{"/memfd:", "/SYSV", "/dev/", "/anon_hugepage"},
		func(s string) bool { return strings.HasPrefix(name, s) })
}

// unnamed counts a deleted file by a link of /proc that leads to it.
func (c *count) unnamed(at string) error {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, at, 0, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 0 {
		c.add(&st)
	}
	return err
}
