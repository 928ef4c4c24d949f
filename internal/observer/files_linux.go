// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// What a read-only mount refuses, and when it is asked, differs from call to call:
// mkdir of a folder that is there is told so whatever the mount is, while unlink is
// refused before anybody looks. The functions here follow the order of fs/namei.c,
// fs/open.c and fs/attr.c, so that the answer is the one that the kernel would have
// given; where another error comes first, the call goes on and gets it.

// sealed reports whether the mount of f is read-only. The mounts of a command do not
// change, so each is asked about once.
func (s *Supervisor) sealed(f *facts, fd int) bool {
	if ro, ok := s.mounts[f.mount]; ok {
		return ro
	}
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false // the kernel decides
	}
	ro := st.Flags&unix.ST_RDONLY != 0
	if s.mounts == nil {
		s.mounts = make(map[uint64]bool)
	}
	s.mounts[f.mount] = ro
	return ro
}

// folderWall is what the walls say about changing the names in a place's folder.
func (s *Supervisor) folderWall(p *place) syscall.Errno {
	if !p.named() {
		return 0
	}
	if s.cfg.Flat != nil {
		return s.flatWall(s.pathOf(p))
	}
	if s.sealed(&p.in, p.dir) {
		return unix.EROFS
	}
	return 0
}

// objectWall is what they say about changing what stands at a place.
func (s *Supervisor) objectWall(p *place) syscall.Errno {
	if s.cfg.Flat != nil {
		if !p.named() {
			return 0 // by a descriptor: it may be one that was handed over
		}
		return s.flatWall(s.pathOf(p))
	}
	if ro, ok := s.mounts[p.is.mount]; ok {
		if ro {
			return unix.EROFS
		}
		return 0
	}
	fd := p.object
	if fd < 0 {
		opened, errno := openat2(p.dir, p.name, pathFlags, 0)
		if errno != 0 {
			return 0
		}
		defer unix.Close(opened)
		fd = opened
	}
	if s.sealed(&p.is, fd) {
		return unix.EROFS
	}
	return 0
}

// flatWall is the wall of a level without mounts: only what is listed, and what lies
// below it, can be written to.
func (s *Supervisor) flatWall(path string) syscall.Errno {
	if path == "" || slices.ContainsFunc(s.cfg.Flat, func(at string) bool { return path == at || strings.HasPrefix(path, at+"/") }) {
		return 0
	}
	return unix.EACCES
}

// standing is the error for removing or moving something that a mount stands on:
// that is how protected names, and the folders above them, are held.
func standing(p *place) syscall.Errno {
	if p.there && p.is.root && p.named() && p.is.mount != p.in.mount {
		return unix.EBUSY
	}
	return 0
}

// permits reports whether the owner, group and mode of a file let our user write to
// it. The command runs as the same user, without capabilities.
func (s *Supervisor) permits(f *facts) bool {
	const write = 2
	switch {
	case int(f.uid) == os.Getuid():
		return f.mode>>6&write != 0
	case int(f.gid) == os.Getgid() || slices.Contains(s.groups, int(f.gid)):
		return f.mode>>3&write != 0
	}
	return f.mode&write != 0
}

// incurable reports whether owner and mode refuse an operation that a wall refuses, so that
// it would fail without the wall.
func (s *Supervisor) incurable(p *place, made bool) bool {
	if made {
		return p.named() && !s.permits(&p.in)
	}
	return p.there && p.is.is(unix.S_IFREG) && !s.permits(&p.is)
}

// ruled asks the judge about a name that the mounts let through. The path is that
// of a refusal, else it may be empty.
func (s *Supervisor) ruled(op sandbox.Op, p *place, made bool) (string, syscall.Errno) {
	if s.cfg.Judge == nil {
		return "", 0
	}
	if op != sandbox.Write || !p.named() {
		path := s.pathOf(p)
		if path == "" {
			return "", 0
		}
		return path, s.cfg.Judge.File(op, path, made)
	}
	dir := s.dirOf(p)
	if !dir.each && !s.cfg.Judge.Special(p.name) {
		return "", 0
	}
	if s.cfg.Judge.File(op, dir.path+"/"+p.name, made) == 0 {
		return "", 0
	}
	path := s.pathOf(p) // as it is now
	return path, s.cfg.Judge.File(op, path, made)
}

// A folderID names a folder for a while: numbers of files are used again.
type folderID struct{ mount, dev, ino uint64 }

// A known is what is known of a folder: where it lies, and whether each name in it
// needs the judge.
type known struct {
	path  string
	each  bool
	since time.Time
}

// fresh is how long it is believed that a folder still lies where it did. It spares
// most calls from asking the kernel for the way there.
const fresh = time.Second

// maxKnown bounds what is remembered of folders.
const maxKnown = 4096

// dirOf returns what is known of the folder of a named place.
func (s *Supervisor) dirOf(p *place) known {
	key := folderID{p.in.mount, p.in.dev, p.in.ino}
	now := time.Now()
	if k, ok := s.folders[key]; ok && now.Sub(k.since) < fresh {
		return k
	}
	k := known{path: s.nameOf(p.dir), since: now}
	k.each = s.cfg.Judge.Folder(k.path)
	if s.folders == nil || len(s.folders) >= maxKnown {
		s.folders = make(map[folderID]known)
	}
	s.folders[key] = k
	return k
}

// end refuses with errno, or asks the judge where the walls have no objection.
func (s *Supervisor) end(l *listener, n *notification, p *place, errno syscall.Errno, made bool) syscall.Errno {
	if errno != 0 {
		if path := s.pathOf(p); path != "" {
			d := sandbox.Denial{Access: file(sandbox.Write, path), NoGrant: s.incurable(p, made)}
			return s.denyAs(l, n, d, errno)
		}
		return 0 // it has no name any more; the wall refuses it all the same
	}
	path, errno := s.ruled(sandbox.Write, p, made)
	if errno != 0 {
		return s.deny(l, n, file(sandbox.Write, path), errno)
	}
	return 0
}

// nowhere is for names that lead nowhere. That is the sandbox's doing only where a
// policy hides what is there; then the kernel's own answer is noted.
func (s *Supervisor) nowhere(l *listener, n *notification, op sandbox.Op, m *missed) syscall.Errno {
	if m.at == "" || s.cfg.Judge == nil || m.errno != unix.EACCES && m.errno != unix.ENOENT {
		return 0
	}
	if s.cfg.Judge.Hidden(op, m.at) && l.valid(n.id) {
		return s.deny(l, n, file(op, m.at), s.hiddenErrno(m))
	}
	return 0
}

// hiddenErrno is what a command is told that asks for something hidden. Our own look
// may have come further than the command can: the folder that stands over a denied
// one is closed for it.
func (s *Supervisor) hiddenErrno(m *missed) syscall.Errno {
	if s.cfg.Judge.File(sandbox.Read, path.Dir(m.at), false) != 0 {
		return unix.EACCES
	}
	return m.errno
}

func (s *Supervisor) judgeOpen(l *listener, n *notification, c *call, name []byte) syscall.Errno {
	if c.flags&unix.O_PATH != 0 {
		return 0
	}
	const changes = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC
	if c.flags&changes == 0 {
		return s.judgeRead(l, n, c, name, sandbox.Read)
	}
	p, m := s.find(n.pid, c.dir, name, c.follow)
	if m != nil {
		return s.nowhere(l, n, sandbox.Write, m)
	}
	defer p.close()
	if !p.there {
		if c.flags&unix.O_CREAT == 0 {
			return s.absent(l, n, &p, sandbox.Write)
		}
		return s.end(l, n, &p, s.folderWall(&p), true)
	}
	writes := c.flags&unix.O_ACCMODE != 0
	temporary := c.flags&unix.O_TMPFILE == unix.O_TMPFILE
	switch {
	case c.flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL && !temporary, p.is.is(unix.S_IFLNK):
		return 0 // EEXIST, ELOOP
	case p.is.is(unix.S_IFDIR):
		if !temporary {
			return 0 // EISDIR
		}
		return s.end(l, n, &p, s.objectWall(&p), false)
	case c.flags&unix.O_DIRECTORY != 0:
		return 0 // ENOTDIR
	case !writes && c.flags&unix.O_TRUNC == 0:
		return s.readable(l, n, &p, sandbox.Read)
	case !p.is.is(unix.S_IFREG):
		return s.end(l, n, &p, s.specialWall(&p), false)
	}
	errno := s.objectWall(&p)
	if errno == unix.EROFS && c.flags&unix.O_TRUNC == 0 && !s.permits(&p.is) {
		errno = unix.EACCES // asked before the mount is
	}
	return s.end(l, n, &p, errno, false)
}

// specialWall is for pipes, sockets and devices. A read-only mount lets them be opened
// for writing; Landlock does not, except below /dev, and devices are none on mounts
// that are not for them.
func (s *Supervisor) specialWall(p *place) syscall.Errno {
	if p.is.is(unix.S_IFSOCK) || !p.named() && p.is.is(unix.S_IFCHR) {
		return 0 // ENXIO; a terminal or another standard descriptor
	}
	if s.objectWall(p) == 0 {
		return 0
	}
	path := s.pathOf(p)
	if path == "" || strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/") {
		return 0
	}
	return unix.EACCES
}

// judgeRead is for calls that read or run a file.
func (s *Supervisor) judgeRead(l *listener, n *notification, c *call, name []byte, op sandbox.Op) syscall.Errno {
	if !s.cfg.Reads {
		return 0
	}
	p, m := s.find(n.pid, c.dir, name, c.follow)
	if m != nil {
		return s.nowhere(l, n, op, m)
	}
	defer p.close()
	if !p.there {
		return s.absent(l, n, &p, op)
	}
	return s.readable(l, n, &p, op)
}

// absent is for a name that is not there and is not to be made.
func (s *Supervisor) absent(l *listener, n *notification, p *place, op sandbox.Op) syscall.Errno {
	if s.cfg.Judge == nil || !s.cfg.Reads {
		return 0
	}
	return s.nowhere(l, n, op, &missed{errno: unix.ENOENT, at: s.pathOf(p)})
}

// readable asks the judge about reading what is there.
func (s *Supervisor) readable(l *listener, n *notification, p *place, op sandbox.Op) syscall.Errno {
	if !s.cfg.Reads {
		return 0
	}
	path, errno := s.ruled(op, p, false)
	if errno != 0 {
		return s.deny(l, n, file(op, path), errno)
	}
	return 0
}

func (s *Supervisor) judgeMake(l *listener, n *notification, c *call, name []byte) syscall.Errno {
	p, m := s.find(n.pid, c.dir, name, false)
	if m != nil {
		return s.nowhere(l, n, sandbox.Write, m)
	}
	defer p.close()
	if p.there {
		return 0 // EEXIST
	}
	return s.end(l, n, &p, s.folderWall(&p), true)
}

func (s *Supervisor) judgeRemove(l *listener, n *notification, c *call, name []byte) syscall.Errno {
	p, m := s.find(n.pid, c.dir, name, false)
	if m != nil {
		return s.nowhere(l, n, sandbox.Write, m)
	}
	defer p.close()
	if !p.there || !p.named() {
		return 0
	}
	errno := s.folderWall(&p)
	if errno == 0 {
		if p.is.is(unix.S_IFDIR) != (c.kind == kindRmdir) {
			return 0 // EISDIR, ENOTDIR
		}
		errno = standing(&p)
	}
	return s.end(l, n, &p, errno, false)
}

func (s *Supervisor) judgeChange(l *listener, n *notification, c *call, name []byte) syscall.Errno {
	p, m := s.find(n.pid, c.dir, name, c.follow)
	if m != nil {
		return s.nowhere(l, n, sandbox.Write, m)
	}
	defer p.close()
	if !p.there {
		return s.absent(l, n, &p, sandbox.Write)
	}
	if c.size && !p.is.is(unix.S_IFREG) {
		return 0 // EISDIR, EINVAL
	}
	if s.cfg.Flat != nil && !c.size {
		return 0 // Landlock does not hold modes, owners and times
	}
	return s.end(l, n, &p, s.objectWall(&p), false)
}

// judgeTouch is for calls on a descriptor.
func (s *Supervisor) judgeTouch(l *listener, n *notification, c *call) syscall.Errno {
	if s.cfg.Flat != nil || c.dir < 0 && c.dir != atCwd {
		return 0
	}
	fd, errno := s.ownBase(n.pid, c.dir)
	if errno != 0 {
		return 0
	}
	p, m := s.object(fd)
	if m != nil {
		return 0
	}
	defer p.close()
	if errno := s.objectWall(&p); errno != 0 && s.pathOf(&p) != "" {
		return s.end(l, n, &p, errno, false)
	}
	return 0
}

// judgeTwo is for rename and link. What is refused is the new name, unless only the
// old one lies behind a wall.
func (s *Supervisor) judgeTwo(l *listener, n *notification, c *call) syscall.Errno {
	from, err := s.path(n.pid, c.path, &s.name)
	if err != 0 {
		return 0
	}
	to, err := s.path(n.pid, c.path2, &s.name2)
	if err != 0 || len(to) == 0 || len(from) == 0 && !c.bare {
		return 0
	}
	var old place
	var m *missed
	if len(from) == 0 {
		fd, errno := s.ownBase(n.pid, c.dir)
		if errno != 0 {
			return 0
		}
		old, m = s.object(fd)
	} else {
		old, m = s.find(n.pid, c.dir, from, c.follow)
	}
	if m != nil {
		return s.nowhere(l, n, sandbox.Write, m)
	}
	defer old.close()
	next, m := s.find(n.pid, c.dir2, to, false)
	if m != nil {
		return s.nowhere(l, n, sandbox.Write, m)
	}
	defer next.close()
	if !old.there || !next.named() {
		return 0
	}
	if c.kind == kindLink {
		return s.judgeLink(l, n, &old, &next)
	}
	return s.judgeRename(l, n, &old, &next)
}

func (s *Supervisor) judgeLink(l *listener, n *notification, old, next *place) syscall.Errno {
	if next.there {
		return 0 // EEXIST
	}
	errno := s.folderWall(next)
	if errno != 0 {
		return s.end(l, n, next, errno, true)
	}
	if s.cfg.Flat == nil && old.is.mount != next.in.mount {
		if old.is.dev == next.in.dev && s.objectWall(old) != 0 {
			return s.end(l, n, old, unix.EXDEV, false)
		}
		return 0
	}
	return s.end(l, n, next, 0, true)
}

func (s *Supervisor) judgeRename(l *listener, n *notification, old, next *place) syscall.Errno {
	if !old.named() {
		return 0
	}
	newWall, oldWall := s.folderWall(next), s.folderWall(old)
	if s.cfg.Flat == nil && old.in.mount != next.in.mount && (newWall != 0 || oldWall != 0) {
		// Asked before the mounts are. Programs copy then, and meet the wall itself.
		if old.in.dev != next.in.dev {
			return 0 // so it is outside, too
		}
		if newWall != 0 {
			newWall = unix.EXDEV
		}
		oldWall = unix.EXDEV
	}
	switch {
	case newWall != 0:
		return s.end(l, n, next, newWall, !next.there)
	case oldWall != 0:
		return s.end(l, n, old, oldWall, false)
	case old.in.mount != next.in.mount:
		return 0 // EXDEV
	case standing(next) != 0:
		return s.end(l, n, next, unix.EBUSY, false)
	case standing(old) != 0:
		return s.end(l, n, old, unix.EBUSY, false)
	}
	if errno := s.end(l, n, next, 0, !next.there); errno != 0 {
		return errno
	}
	return s.end(l, n, old, 0, false)
}
