// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/perform"
	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// copyTo copies what a call on one path depends on, and reports whether the supervisor can make it.
func (r *request) copyTo(c *perform.Call, p *place) bool {
	switch r.kind {
	case kindOpen:
		return r.copyOpen(c, p)
	case kindMake:
		return !p.exists && r.copyMake(c)
	case kindUnlink:
		c.Op = perform.Unlink
		return p.exists && !p.is(unix.S_IFDIR)
	case kindRmdir:
		c.Op = perform.Rmdir
		return p.exists && p.is(unix.S_IFDIR)
	case kindTruncate:
		c.Op, c.Size = perform.Truncate, int64(r.data)
		return c.Size >= 0
	case kindChange, kindTouch:
		return r.copyChange(c, p)
	}
	return false
}

// copyOpen is for opening a regular file: what is opened else could lead out of the sandbox, or wait.
func (r *request) copyOpen(c *perform.Call, p *place) bool {
	const odd = unix.O_DIRECTORY | unix.O_PATH | unix.O_ASYNC
	c.Op, c.Flags = perform.Open, int(uint32(r.flags))&^unix.O_CLOEXEC
	c.Mode, c.Umask = uint32(r.mode), r.umask()
	if p.exists && r.flags&unix.O_CREAT != 0 && r.planted(p) {
		return false // as the kernel does (protected_regular)
	}
	return !r.within && r.flags&odd == 0 && (!p.exists && !r.slash() || p.exists && p.is(unix.S_IFREG))
}

func (r *request) copyMake(c *perform.Call) bool {
	c.Mode, c.Umask = uint32(r.mode), r.umask()
	switch r.form {
	case 'e':
		c.Op = perform.Mkdir
		return true
	case 's':
		text, errno := r.name(r.data, &r.second)
		c.Op, c.Text = perform.Symlink, string(text)
		return errno == 0 && len(text) > 0 && !r.slash()
	case 'm':
		kind := c.Mode & unix.S_IFMT
		c.Op = perform.Mknod
		return (kind == 0 || kind == unix.S_IFREG || kind == unix.S_IFIFO) && !r.slash()
	}
	return false
}

// copyChange is for changes of attributes.
func (r *request) copyChange(c *perform.Call, p *place) bool {
	switch {
	case r.oddFlags:
		return false
	case r.chmod:
		c.Op, c.Mode = perform.Chmod, uint32(r.mode)&0o7777
		return !p.is(unix.S_IFLNK) && (r.mode&setIDs == 0 || p.is(unix.S_IFDIR) && r.mode&unix.S_ISUID == 0)
	case r.chown:
		c.Op, c.Owner, c.Group = perform.Chown, int(int32(r.owner)), int(int32(r.group))
		return !r.unmapped()
	case r.form == 'X', r.form == 'R':
		return !p.is(unix.S_IFLNK) && r.copyAttribute(c)
	}
	c.Op = perform.SetTimes
	return r.copyTimes(c)
}

// copyTimes reads the times that a call sets.
func (r *request) copyTimes(c *perform.Call) bool {
	var b [32]byte // the largest of the structs
	size, unit := len(b), int64(1)
	switch r.form {
	case 'U':
		size, unit = 16, 0 // seconds only
	case 'V':
		unit = 1000
	case 'T':
	default:
		return false
	}
	if r.data == 0 {
		return true // now
	}
	if tasks.Peek(r.n.PID, r.data, b[:size]) != size {
		return false
	}
	for at := 0; at < size; at += size / 2 {
		t := unix.Timespec{Sec: int64(uint64At(b[:], at))}
		if unit > 0 {
			t.Nsec = int64(uint64At(b[:], at+8)) * unit
		}
		if r.form == 'V' && (t.Nsec < 0 || t.Nsec >= 1e9) {
			return false // EINVAL
		}
		c.Times = append(c.Times, t)
	}
	return true
}

// copyAttribute reads an extended attribute, of at most two pages.
func (r *request) copyAttribute(c *perform.Call) bool {
	const longest = 2 * tasks.PageSize
	name, errno := r.name(r.data, &r.second)
	if errno != 0 {
		return false
	}
	c.Op, c.Text = perform.RemoveXattr, string(name)
	if r.form == 'R' {
		return true
	}
	value, size, flags := r.n.Args[r.more], r.n.Args[r.more+1], r.n.Args[r.more+2]
	if size > longest {
		return false
	}
	c.Op, c.Value, c.Flags = perform.SetXattr, make([]byte, size), int(int32(flags))
	return tasks.Peek(r.n.PID, value, c.Value) == len(c.Value)
}

// slash reports whether the name of the call ends in a slash, as only that of a directory may.
func (r *request) slash() bool {
	end := bytes.IndexByte(r.first[:], 0)
	return end > 0 && r.first[end-1] == '/'
}

// umask returns that of the task.
func (r *request) umask() uint32 {
	umask, err := strconv.ParseUint(r.status("Umask:"), 8, 32)
	if err != nil {
		return 0o077
	}
	return uint32(umask)
}
