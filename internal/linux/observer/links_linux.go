// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
)

// A file in a writable place may have further names, hard links, in places that are not
// writable, such as the store of a package manager. No mount separates them, because the
// file is one. How many names there are is known, where they are is not. So names count
// that the command did not make.

// A fileID names a file. The number of one that was removed is used again; the time at
// which it was created tells the two apart.
type fileID struct {
	dev, ino uint64
	born     int64
}

func (f *facts) id() fileID { return fileID{f.dev, f.ino, f.born} }

// maxOwn bounds how many files with links of the command's own are remembered. Others count
// as having names elsewhere.
const maxOwn = 1 << 16

// rememberLink is for a file that gets a further name. If it has no other than the one that
// the command has used, all that come are the command's own, or were made by others
// during the run.
func (r *request) rememberLink(p *place) {
	if !p.is(unix.S_IFREG) || p.links > 1 || len(r.own) >= maxOwn {
		return
	}
	fd := p.object
	if p.named() {
		opened, errno := openat2(p.dir, p.name, pathFlags, 0)
		if errno != 0 {
			return
		}
		defer unix.Close(opened)
		fd = opened
	}
	var f facts
	if r.stat(fd, "", &f) != 0 || r.linkedElsewhere(fd, &f) {
		return
	}
	if r.own == nil {
		r.own = make(map[fileID]bool)
	}
	r.own[f.id()] = true
}

// linkedElsewhere reports whether a file has names that the command did not make. The facts
// were read from the descriptor.
func (r *request) linkedElsewhere(fd int, f *facts) bool {
	switch {
	case f.links == 0 || r.own[f.id()]:
		return false
	case f.links > 1:
		return true
	}
	// A single name is another one where that by which the descriptor was opened is gone,
	// which is looked at after the count: a name that is gone does not come back.
	name := r.nameOf(fd)
	return name == "" || strings.HasSuffix(name, deleted)
}

// deleted is what the kernel adds to a name that is gone. A file whose name ends like that is
// taken for one.
const deleted = " (deleted)"

// judgeLinks is for calls that the walls allow and that may change the content of a file.
// Slash says that its name ends in one.
func (r *request) judgeLinks(p *place, slash bool) syscall.Errno {
	switch {
	case r.kind == kindOpen && r.flags&(unix.O_ACCMODE|unix.O_TRUNC) == 0:
		return 0
	case !r.cfg.ProtectHardLinks:
		r.reportLink(p)
		return 0
	case slash || !r.isShared(p):
		return 0 // the kernel decides
	}
	return r.hand(p)
}

// reportLink notes that a file with names elsewhere is opened for writing. It is judged by
// what the name leads to now, like a denial.
func (r *request) reportLink(p *place) {
	const exclusive = unix.O_CREAT | unix.O_EXCL
	switch {
	case !p.exists || p.named() && p.links < 2 || !p.is(unix.S_IFREG):
		return
	case r.flags&exclusive == exclusive || r.flags&unix.O_DIRECTORY != 0 || !r.writableByMode(&p.facts):
		return // it fails
	case !r.linkedElsewhere(p.object, &p.facts) || !r.isShared(p) || !r.valid():
		return
	}
	path := strings.TrimSuffix(r.pathOf(p), deleted)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.linked.Add(path, p.links)
}

// isShared reports whether the file at a place, or the directory that it would be created in,
// is in a writable place with files of the host.
func (r *request) isShared(p *place) bool {
	if !r.hasMounts() {
		return true // links lead from place to place
	}
	mount := p.mount
	if !p.exists {
		mount = p.parent.mount
	}
	if r.cfg.OwnRoots {
		return r.sharedMounts()[mount] // tasks may have mounts of their own
	}
	if r.shared == nil {
		r.shared = r.sharedMounts()
	}
	return r.shared[mount]
}

// sharedMounts returns the ids of the mounts whose nearest place is a shared one. The ids of
// mounts that are there are different, and those of the command's sandbox stay.
func (r *request) sharedMounts() map[uint64]bool {
	root, known, errno := r.rootDir()
	if errno != 0 {
		return nil
	}
	if !known {
		defer unix.Close(root)
	}
	ids := make(map[uint64]bool)
	for _, m := range r.mounts() {
		if !r.cfg.isShared(m.Point) {
			continue
		}
		point, errno := openat2(root, "./"+m.Point, pathFlags, unix.RESOLVE_NO_SYMLINKS)
		if errno != 0 {
			continue
		}
		var f facts
		if r.stat(point, "", &f) == 0 {
			ids[f.mount] = true
		}
		unix.Close(point)
	}
	return ids
}

// isShared reports whether the nearest place over a path is a shared one.
func (c *Config) isShared(path string) bool {
	return nearest(c.Shared, path) > 0 && nearest(c.Shared, path) >= nearest(c.Own, path)
}

// nearest returns the length of the longest of the places that a path is in, or 0.
func nearest(places []string, path string) int {
	longest := 0
	for _, at := range places {
		if hostfacts.Below(path, at) {
			longest = max(longest, len(at))
		}
	}
	return longest
}
