// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"bytes"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// facts are what statx(2) tells of a file: all that a wall can depend on.
type facts struct {
	mode  uint16 // type and permissions
	uid   uint32
	gid   uint32
	ino   uint64
	dev   uint64 // as the kernel's major and minor, side by side
	mount uint64 // the id of the mount that it is seen through
	root  bool   // it is the root of that mount
	links uint32
}

func (f *facts) is(kind uint16) bool { return f.mode&unix.S_IFMT == kind }

// A place is what a name leads to for one task. The descriptors are ours.
type place struct {
	dir    int  // the folder that holds the name; -1 when a descriptor or a link of /proc led to the object itself
	kept   bool // dir is not this place's to close
	name   string
	in     facts // of dir
	object int   // what stands there, when it was opened; -1
	is     facts // of what stands there
	there  bool  // something does
}

func (p *place) close() {
	if p.dir >= 0 && !p.kept {
		unix.Close(p.dir)
	}
	if p.object >= 0 {
		unix.Close(p.object)
	}
	p.dir, p.object = -1, -1
}

// named reports whether the place is a name in a folder.
func (p *place) named() bool { return p.dir >= 0 }

// A missed is why a name leads nowhere, and where the way ended.
type missed struct {
	errno syscall.Errno
	// at is the rest of the name behind the last folder that was reached, absolute;
	// empty where that is not known.
	at string
}

// most is how many symbolic links a name may have (MAXSYMLINKS of linux/namei.h).
const most = 40

const pathFlags = unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW

// find follows a name as the kernel does for a task. Without follow, a symbolic
// link at the end stands for itself. A name that is not there has a place, when
// its folder is.
func (s *Supervisor) find(tid uint32, dir int32, name []byte, follow bool) (place, *missed) {
	if len(name) == 0 {
		return place{dir: -1, object: -1}, &missed{errno: unix.ENOENT}
	}
	slash := name[len(name)-1] == '/'
	p, m := s.findName(tid, dir, name, follow || slash)
	if m == nil && slash && p.there && !p.is.is(unix.S_IFDIR) {
		p.close()
		return p, &missed{errno: unix.ENOTDIR}
	}
	return p, m
}

// findName is find for a name that is not empty, with no regard to a slash at its end.
func (s *Supervisor) findName(tid uint32, dir int32, name []byte, follow bool) (place, *missed) {
	p := place{dir: -1, object: -1}
	base, kept, err := s.base(tid, dir, name)
	if err != 0 {
		return p, &missed{errno: err}
	}
	way, last := split(name)
	if last == "" || last == ".." || last == "." {
		return s.walk(tid, base, kept, string(name), follow)
	}
	p.dir, p.kept, p.name = base, kept, last
	known := false
	if way == "" && dir == atCwd && kept && name[0] != '/' {
		p.in, known = s.where[s.lately].in, true // what base has just used
	}
	if way != "" {
		fd, errno := openat2(base, way, pathFlags|unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS)
		if errno != 0 {
			// A symbolic link, or an error whose place matters.
			return s.walk(tid, base, kept, string(name), follow)
		}
		p.close()
		p.dir, p.kept = fd, false
	}
	if !known {
		if errno := s.stat(p.dir, "", &p.in); errno != 0 {
			p.close()
			return p, &missed{errno: errno}
		}
	}
	switch errno := s.stat(p.dir, p.name, &p.is); errno {
	case 0:
		p.there = true
	case unix.ENOENT:
	default:
		missing := &missed{errno: errno, at: s.nameOf(p.dir) + "/" + p.name}
		p.close()
		return p, missing
	}
	if p.there && follow && p.is.is(unix.S_IFLNK) {
		return s.walk(tid, p.dir, p.kept, p.name, true)
	}
	return p, nil
}

// walk follows a name from a folder component by component. It closes the folder unless
// that is kept.
func (s *Supervisor) walk(tid uint32, base int, kept bool, name string, follow bool) (place, *missed) {
	if kept {
		own, err := unix.FcntlInt(uintptr(base), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return place{dir: -1, object: -1}, &missed{errno: unix.EMFILE}
		}
		base = own
	}
	w := walk{s: s, tid: tid, at: base}
	return w.to(name, follow)
}

// base opens the folder that a name starts at. One that is kept is not the caller's
// to close.
func (s *Supervisor) base(tid uint32, dir int32, name []byte) (fd int, kept bool, errno syscall.Errno) {
	switch {
	case name[0] == '/':
		return s.rootOf(tid)
	case dir == atCwd:
		return s.here(tid)
	}
	fd, errno = s.ownBase(tid, dir)
	return fd, false, errno
}

// ownBase opens what a descriptor of a task, or its working folder, stands for.
func (s *Supervisor) ownBase(tid uint32, dir int32) (int, syscall.Errno) {
	switch {
	case dir == atCwd:
		return s.procOpen(tid, "/cwd")
	case dir < 0:
		return -1, unix.EBADF
	}
	return s.procOpen(tid, "/fd/"+strconv.Itoa(int(dir)))
}

// A whereabouts is the working folder of a task, for a while.
type whereabouts struct {
	tid   uint32
	fd    int
	in    facts
	since time.Time
}

const (
	// recent is how long a working folder is believed. A task that changes its own
	// asks us first; the number of one that has ended is not used again so soon.
	recent = 100 * time.Millisecond
	// unsteady is how long none is remembered after a change: it is performed after our
	// answer, and threads share the folder.
	unsteady = 20 * time.Millisecond
)

// here opens the working folder of a task, or finds it among the latest ones.
func (s *Supervisor) here(tid uint32) (fd int, kept bool, errno syscall.Errno) {
	now := time.Now()
	for i := range s.where {
		if w := &s.where[i]; w.tid == tid && now.Sub(w.since) < recent {
			s.lately = i
			return w.fd, true, 0
		}
	}
	fd, errno = s.procOpen(tid, "/cwd")
	if errno != 0 || now.Sub(s.moved) < unsteady {
		return fd, false, errno
	}
	var in facts
	if s.stat(fd, "", &in) != 0 {
		return fd, false, 0
	}
	s.lately = (s.lately + 1) % len(s.where)
	w := &s.where[s.lately]
	if w.tid != 0 {
		unix.Close(w.fd)
	}
	*w = whereabouts{tid: tid, fd: fd, in: in, since: now}
	return fd, true, 0
}

// forget is for when a working folder changes.
func (s *Supervisor) forget() {
	for i := range s.where {
		if s.where[i].tid != 0 {
			unix.Close(s.where[i].fd)
			s.where[i] = whereabouts{}
		}
	}
	s.moved = time.Now()
}

// rootOf opens the root folder of a task. Tasks that cannot change theirs all have
// the same one, which is kept.
func (s *Supervisor) rootOf(tid uint32) (fd int, kept bool, errno syscall.Errno) {
	if s.cfg.OwnRoots {
		fd, errno = s.procOpen(tid, "/root")
		return fd, false, errno
	}
	if s.root < 0 {
		fd, errno := s.procOpen(tid, "/root")
		if errno != 0 {
			return -1, false, errno
		}
		s.root = fd
	}
	return s.root, true, 0
}

// procOpen opens what a link below a task's folder in /proc leads to.
func (s *Supervisor) procOpen(tid uint32, what string) (int, syscall.Errno) {
	var buf [48]byte
	b := strconv.AppendUint(buf[:0], uint64(tid), 10)
	b = append(b, what...)
	b = append(b, 0)
	fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(s.proc), uintptr(unsafe.Pointer(&b[0])), unix.O_PATH|unix.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), 0
}

// split cuts a name behind its last folder. Slashes at the end mean nothing here.
func split(name []byte) (way, last string) {
	name = bytes.TrimRight(name, "/")
	i := bytes.LastIndexByte(name, '/')
	if i < 0 {
		return "", string(name)
	}
	way = strings.Trim(string(name[:i]), "/")
	return way, string(name[i+1:])
}

// openat2 opens without following anything at the end.
func openat2(dir int, name string, flags, resolve uint64) (int, syscall.Errno) {
	for {
		fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: flags, Resolve: resolve})
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			errno, _ := err.(syscall.Errno) //nolint:errorlint // x/sys returns the number itself
			return -1, errno
		}
		return fd, 0
	}
}

// stat looks at a name in a folder, or, without a name, at a descriptor.
func (s *Supervisor) stat(dir int, name string, f *facts) syscall.Errno {
	if len(name) >= len(s.way) {
		return unix.ENAMETOOLONG
	}
	return s.statAt(dir, append(s.way[:0], name...), f)
}

// statAt does the same for a name in the supervisor's buffer.
func (s *Supervisor) statAt(dir int, name []byte, f *facts) syscall.Errno {
	st := &s.looked
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
	if len(name) == 0 {
		flags |= unix.AT_EMPTY_PATH
	}
	name = append(name, 0)
	const want = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_UID | unix.STATX_GID | unix.STATX_INO | unix.STATX_NLINK | unix.STATX_MNT_ID
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(&name[0])), uintptr(flags), want, uintptr(unsafe.Pointer(st)), 0)
	if errno != 0 {
		return errno
	}
	*f = facts{
		mode: st.Mode, uid: st.Uid, gid: st.Gid, ino: st.Ino, dev: uint64(st.Dev_major)<<32 | uint64(st.Dev_minor),
		mount: st.Mnt_id, root: st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, links: st.Nlink,
	}
	return 0
}

// nameOf returns where a descriptor lies, as the command's own tree shows it; empty
// when nobody knows.
func (s *Supervisor) nameOf(fd int) string {
	if fd < 0 {
		return ""
	}
	var link [32]byte
	b := strconv.AppendInt(append(link[:0], "self/fd/"...), int64(fd), 10)
	b = append(b, 0)
	n, _, errno := unix.Syscall6(unix.SYS_READLINKAT, uintptr(s.proc), uintptr(unsafe.Pointer(&b[0])),
		uintptr(unsafe.Pointer(&s.text[0])), uintptr(len(s.text)), 0, 0)
	if errno != 0 || n == 0 || s.text[0] != '/' {
		return ""
	}
	if n == 1 {
		return ""
	}
	return string(s.text[:n])
}

// pathOf returns where a place lies, absolute; empty when nobody knows.
func (s *Supervisor) pathOf(p *place) string {
	if p.named() {
		return s.nameOf(p.dir) + "/" + p.name
	}
	if p.is.links == 0 {
		return ""
	}
	return s.nameOf(p.object)
}

// A walk follows a name component by component, for names with symbolic links.
type walk struct {
	s     *Supervisor
	tid   uint32
	at    int // the folder that was reached; ours
	links int
}

// to follows a name to its end. It closes what it was given.
func (w *walk) to(name string, follow bool) (place, *missed) {
	rest := name
	if strings.HasPrefix(name, "/") { // it was found from the root before
		rest = strings.TrimLeft(name, "/")
	}
	for {
		var part string
		part, rest = cut(rest)
		last := rest == ""
		switch part {
		case "", ".":
			if last {
				return w.self()
			}
			continue
		case "..":
			fd, errno := openat2(w.at, "..", pathFlags, 0)
			if errno != 0 {
				return w.fail(errno, "..", rest)
			}
			w.move(fd)
			if last {
				return w.self()
			}
			continue
		}
		p, errno := w.look(part)
		if errno != 0 {
			return w.fail(errno, part, rest)
		}
		if !p.there && !last {
			p.dir = -1 // still at
			return w.fail(unix.ENOENT, part, rest)
		}
		if p.there && p.is.is(unix.S_IFLNK) && (!last || follow) {
			end, m, done := w.follow(part, &rest, last)
			if done {
				return end, m
			}
			continue
		}
		if last {
			return p, nil
		}
		fd, errno := openat2(w.at, part, pathFlags|unix.O_DIRECTORY, 0)
		if errno != 0 {
			return w.fail(errno, part, rest)
		}
		w.move(fd)
	}
}

// look finds one component. The place shares the folder of the walk.
func (w *walk) look(part string) (place, syscall.Errno) {
	p := place{dir: w.at, name: part, object: -1}
	if errno := w.s.stat(w.at, "", &p.in); errno != 0 {
		return p, errno
	}
	switch errno := w.s.stat(w.at, part, &p.is); errno {
	case 0:
		p.there = true
	case unix.ENOENT:
		if w.s.isProcRoot(w.at) && (part == "self" || part == "thread-self") {
			p.there, p.is.mode = true, unix.S_IFLNK // not for us, but for tasks in there
		}
	default:
		return p, errno
	}
	return p, 0
}

// follow goes through a symbolic link. It is done when the name ends there.
func (w *walk) follow(part string, rest *string, last bool) (place, *missed, bool) {
	none := place{dir: -1, object: -1}
	if w.links++; w.links > most {
		w.drop()
		return none, &missed{errno: unix.ELOOP}, true
	}
	if w.s.isProc(w.at) {
		if to := w.s.ownEntry(w.at, part, w.tid); to != "" {
			*rest = join(to, *rest)
			return none, nil, false
		}
		// Such a link leads to an object, whatever its text says.
		fd, err := unix.Openat(w.at, part, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			errno, _ := err.(syscall.Errno) //nolint:errorlint // x/sys returns the number itself
			p, m := w.fail(errno, part, *rest)
			return p, m, true
		}
		if !last {
			w.move(fd)
			return none, nil, false
		}
		w.drop()
		p, m := w.s.object(fd)
		return p, m, true
	}
	n, err := unix.Readlinkat(w.at, part, w.s.text[:])
	if err != nil || n == 0 || n == len(w.s.text) {
		p, m := w.fail(unix.ENOENT, part, *rest)
		return p, m, true
	}
	to := string(w.s.text[:n])
	if to[0] == '/' {
		root, kept, errno := w.s.rootOf(w.tid)
		if kept {
			var err error
			if root, err = unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 3); err != nil {
				errno = unix.EMFILE
			}
		}
		if errno != 0 {
			p, m := w.fail(errno, part, *rest)
			return p, m, true
		}
		w.move(root)
	}
	*rest = join(to, *rest)
	return none, nil, false
}

// object is a place that was reached by no name.
func (s *Supervisor) object(fd int) (place, *missed) {
	p := place{dir: -1, object: fd, there: true}
	if errno := s.stat(fd, "", &p.is); errno != 0 {
		p.close()
		return p, &missed{errno: errno}
	}
	return p, nil
}

// self is the folder that was reached.
func (w *walk) self() (place, *missed) {
	fd := w.at
	w.at = -1
	return w.s.object(fd)
}

func (w *walk) move(fd int) {
	unix.Close(w.at)
	w.at = fd
}

func (w *walk) drop() {
	if w.at >= 0 {
		unix.Close(w.at)
		w.at = -1
	}
}

func (w *walk) fail(errno syscall.Errno, part, rest string) (place, *missed) {
	m := &missed{errno: errno, at: join(w.s.nameOf(w.at)+"/"+part, rest)}
	w.drop()
	return place{dir: -1, object: -1}, m
}

func cut(name string) (part, rest string) {
	part, rest, _ = strings.Cut(name, "/")
	return part, strings.TrimLeft(rest, "/")
}

func join(a, b string) string {
	a = strings.TrimRight(a, "/")
	if b == "" {
		if a == "" {
			return "/"
		}
		return a
	}
	return a + "/" + b
}

// isProc reports whether a folder lies in a process file system.
func (s *Supervisor) isProc(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// isProcRoot reports whether a folder is the top of one.
func (s *Supervisor) isProcRoot(fd int) bool {
	const rootIno = 1 // PROC_ROOT_INO of linux/proc_ns.h
	var f facts
	return s.isProc(fd) && s.stat(fd, "", &f) == 0 && f.ino == rootIno
}

// ownEntry says what the links to a task's own entry mean for that task: its numbers
// in its own process namespace. It is empty for all other links.
func (s *Supervisor) ownEntry(dir int, part string, tid uint32) string {
	switch {
	case part != "self" && part != "thread-self" && part != "net" && part != "mounts" || !s.isProcRoot(dir):
		return ""
	case part == "net" || part == "mounts":
		return "self/" + part
	}
	b := s.status(tid)
	process, thread := lastWord(field(b, "NStgid:")), lastWord(field(b, "NSpid:"))
	switch {
	case process == "" || thread == "":
		return ""
	case part == "self":
		return process
	}
	return process + "/task/" + thread
}

// status reads the status of a task; empty when it is gone.
func (s *Supervisor) status(tid uint32) []byte {
	var name [32]byte
	b := strconv.AppendUint(name[:0], uint64(tid), 10)
	fd, err := unix.Openat(s.proc, string(append(b, "/status"...)), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	buf := make([]byte, pathMax)
	n, err := unix.Read(fd, buf)
	if err != nil || n <= 0 {
		return nil
	}
	return buf[:n]
}

// field returns the words behind a name in a status.
func field(status []byte, name string) string {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return string(bytes.TrimSpace(rest))
		}
	}
	return ""
}

func lastWord(s string) string {
	words := strings.Fields(s)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}
