// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/perform"
)

// A command's user namespace maps one user and one group, and the kernel answers EINVAL to
// giving a file to any other id. Programs that root runs (tar, cp -a, install -o, rsync -a)
// take that for a failure. So the supervisor answers for the kernel: where the change would
// succeed outside it says that it has, and nothing is changed; elsewhere it gives the error
// of outside. As nothing is performed, no race gains anything.

// judgeOwner is for changing the owner of a file, where no wall denies it. Zero without made
// has the kernel decide.
func (r *request) judgeOwner() syscall.Errno {
	if !r.cfg.IgnoreOwners || r.oddFlags || !r.unmapped() {
		return 0
	}
	if perform.AsCommand(r.ownable) != 0 {
		return 0 // the kernel finds the same, or gives its error
	}
	switch {
	case !r.chowns:
		return unix.EPERM // as for this user outside
	case r.valid():
		r.made = true
		r.ownership.Add(1)
	}
	return 0
}

// unmapped reports whether the call names an id that the command cannot give.
func (r *request) unmapped() bool {
	const keep = ^uint32(0)
	group := r.group != keep && int(r.group) != unix.Getegid()
	if group && slices.Contains(r.groups, int(r.group)) {
		// Without a user namespace the kernel allows it. Outside it would for an ordinary user,
		// so EPERM would be wrong.
		group = r.hasMounts() && r.chowns
	}
	return group || r.owner != keep && int(r.owner) != unix.Geteuid()
}

// ownable returns zero where the file of the call exists, can be reached by the command, and
// lies in a place that the policy makes writable.
func (r *request) ownable() syscall.Errno {
	p, lerr := r.ownedPlace()
	if lerr != nil {
		return lerr.errno
	}
	defer p.close()
	path := r.nameOf(p.object)
	if p.named() {
		path = r.pathOf(&p)
	}
	switch {
	case !p.exists:
		return unix.ENOENT
	case r.fileWall(&p) != 0 || !r.hasMounts() && r.pathWall(path) != 0:
		return unix.EROFS
	case nearest(r.cfg.Shared, path) == 0 && nearest(r.cfg.Own, path) == 0:
		return unix.EINVAL
	}
	return 0
}

// ownedPlace returns the place whose owner the call changes.
func (r *request) ownedPlace() (place, *lookupError) {
	if r.kind == kindTouch { // fchown takes no descriptor without rights
		if r.pathOnly(r.dir) {
			return noPlace(), &lookupError{errno: unix.EBADF}
		}
		return r.descriptor(r.dir)
	}
	name, errno := r.name(r.path, &r.first)
	if errno != 0 {
		return noPlace(), &lookupError{errno: errno}
	}
	return r.find(r.dir, name, r.follow)
}

// pathOnly reports whether a descriptor of the task was opened with O_PATH, or is not known.
func (r *request) pathOnly(fd int32) bool {
	flags, err := strconv.ParseUint(r.field("fdinfo/"+strconv.Itoa(int(fd)), "flags:"), 8, 64)
	return err != nil || flags&unix.O_PATH != 0
}
