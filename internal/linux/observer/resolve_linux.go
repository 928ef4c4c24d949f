// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"bytes"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// facts are what statx(2) tells of a file that a wall can depend on.
type facts struct {
	mode  uint16 // type and permissions
	uid   uint32
	gid   uint32
	ino   uint64
	dev   uint64 // the kernel's major and minor, side by side
	mount uint64 // the id of the mount that it is seen through; unique says for how long
	// unique says that the kernel gives the id to no other mount later (Linux 6.8).
	unique bool
	root   bool // it is the root of that mount
	links  uint32
	born   int64 // in nanoseconds; 0 where the file system does not tell
}

// is reports whether the file has a type, one of the S_IF constants.
func (f *facts) is(kind uint16) bool { return f.mode&unix.S_IFMT == kind }

// special reports whether it is neither a regular file nor a directory.
func (f *facts) special() bool { return !f.is(unix.S_IFREG) && !f.is(unix.S_IFDIR) }

// A place is what a name leads to for one task.
type place struct {
	// the directory that holds the name; -1 when a descriptor or a link of /proc led to the file itself
	dir    int
	shared bool   // dir is not this place's to close
	name   string // in dir
	parent facts  // of dir
	object int    // the file, where it was opened; -1
	exists bool
	facts  // of the file, where it exists
}

func noPlace() place { return place{dir: -1, object: -1} }

func (p *place) close() {
	if p.dir >= 0 && !p.shared {
		unix.Close(p.dir)
	}
	if p.object >= 0 {
		unix.Close(p.object)
	}
	p.dir, p.object = -1, -1
}

// named reports whether the place is a name in a directory.
func (p *place) named() bool { return p.dir >= 0 }

// A lookupError is why a name leads to no place.
type lookupError struct {
	errno syscall.Errno
	// path is the rest of the name behind the last directory that was reached,
	// absolute; empty where that is not known.
	path string
}

// maxLinks is how many symbolic links a name may have (MAXSYMLINKS of linux/namei.h).
const maxLinks = 40

const pathFlags = unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW

// find resolves a name as the kernel does for the task. Without follow, a symbolic link
// at the end stands for itself. A name that does not exist has a place when its directory
// exists.
func (r *request) find(dir int32, name []byte, follow bool) (place, *lookupError) {
	switch {
	case len(name) == 0 && r.bare:
		return r.descriptor(dir)
	case len(name) == 0:
		return noPlace(), &lookupError{errno: unix.ENOENT}
	}
	slash := name[len(name)-1] == '/'
	p, lerr := r.findName(dir, name, follow || slash)
	if lerr == nil && slash && p.exists && !p.is(unix.S_IFDIR) {
		p.close()
		return p, &lookupError{errno: unix.ENOTDIR}
	}
	return p, lerr
}

// findName is find for a name that is not empty, without regard to a slash at its end.
func (r *request) findName(dir int32, name []byte, follow bool) (place, *lookupError) {
	base, shared, errno := r.base(dir, name)
	if errno != 0 {
		return noPlace(), &lookupError{errno: errno}
	}
	way, last := split(name)
	if last == "" || last == ".." || last == "." {
		return r.walk(base, shared, string(name), follow)
	}
	p := place{dir: base, shared: shared, name: last, object: -1}
	if way != "" {
		fd, errno := openat2(base, way, pathFlags|unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS)
		if errno != 0 { // a symbolic link, or an error whose place matters
			return r.walk(base, shared, string(name), follow)
		}
		p.close()
		p.dir, p.shared = fd, false
	} else if dir == atCwd && shared && name[0] != '/' {
		p.parent = r.workdirs[r.lastWorkdir].facts
	}
	if errno := r.look(&p); errno != 0 {
		lerr := &lookupError{errno: errno, path: r.nameOf(p.dir) + "/" + p.name}
		p.close()
		return p, lerr
	}
	if p.exists && follow && p.is(unix.S_IFLNK) {
		return r.walk(p.dir, p.shared, p.name, true)
	}
	return p, nil
}

// look fills in the facts of a named place, and those of its directory unless they are
// known.
func (r *request) look(p *place) syscall.Errno {
	if p.parent == (facts{}) {
		if errno := r.stat(p.dir, "", &p.parent); errno != 0 {
			return errno
		}
	}
	errno := r.stat(p.dir, p.name, &p.facts)
	if errno == unix.ENOENT {
		return 0
	}
	p.exists = errno == 0
	return errno
}

// descriptor returns the place of a descriptor of the task, or of its working directory.
func (r *request) descriptor(dir int32) (place, *lookupError) {
	fd, errno := r.openAt(dir)
	if errno != 0 {
		return noPlace(), &lookupError{errno: errno}
	}
	return r.object(fd)
}

// base opens the directory that a name starts at. A shared one is not the caller's to
// close.
func (r *request) base(dir int32, name []byte) (fd int, shared bool, errno syscall.Errno) {
	switch {
	case name[0] == '/':
		return r.rootDir()
	case dir == atCwd:
		return r.workdir()
	}
	fd, errno = r.openAt(dir)
	return fd, false, errno
}

// split cuts a name behind its last directory. Slashes at the end are ignored.
func split(name []byte) (way, last string) {
	name = bytes.TrimRight(name, "/")
	i := bytes.LastIndexByte(name, '/')
	if i < 0 {
		return "", string(name)
	}
	way = strings.Trim(string(name[:i]), "/")
	return way, string(name[i+1:])
}

// openat2 opens a name.
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

// dup duplicates a descriptor that is shared.
func dup(fd int) (int, syscall.Errno) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return -1, unix.EMFILE
	}
	return own, 0
}

// stat looks at a name in a directory, or, without a name, at a descriptor.
func (r *request) stat(dir int, name string, f *facts) syscall.Errno {
	const (
		flags = unix.AT_EMPTY_PATH | unix.AT_SYMLINK_NOFOLLOW | unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
		want  = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_UID | unix.STATX_GID | unix.STATX_INO | unix.STATX_NLINK | unix.STATX_BTIME | unix.STATX_MNT_ID | unix.STATX_MNT_ID_UNIQUE
	)
	st := &r.statx
	b := append(append(r.buf[:0], name...), 0)
	_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(&b[0])), flags, want,
		uintptr(unsafe.Pointer(st)), 0)
	if errno != 0 {
		return errno
	}
	*f = facts{
		mode: st.Mode, uid: st.Uid, gid: st.Gid, ino: st.Ino,
		dev:   uint64(st.Dev_major)<<32 | uint64(st.Dev_minor),
		mount: st.Mnt_id, unique: st.Mask&unix.STATX_MNT_ID_UNIQUE != 0,
		root: st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, links: st.Nlink,
		born: st.Btime.Sec*1e9 + int64(st.Btime.Nsec),
	}
	return 0
}

// nameOf returns the path of a descriptor in the command's own tree, without a slash at
// its end; empty for the root and where it is not known.
func (r *request) nameOf(fd int) string { return string(r.linkOf(fd)) }

// linkOf is nameOf in memory that the next call uses again.
func (r *request) linkOf(fd int) []byte {
	if fd < 0 {
		return nil
	}
	b := append(strconv.AppendInt(append(r.buf[:0], "self/fd/"...), int64(fd), 10), 0)
	n, _, errno := unix.Syscall6(unix.SYS_READLINKAT, uintptr(r.proc), uintptr(unsafe.Pointer(&b[0])),
		uintptr(unsafe.Pointer(&r.link[0])), uintptr(len(r.link)), 0, 0)
	if errno != 0 || n <= 1 || r.link[0] != '/' {
		return nil
	}
	return r.link[:n]
}

// pathOf returns the absolute path of a place; empty where it is not known.
func (r *request) pathOf(p *place) string {
	switch {
	case p.named():
		return string(append(append(r.linkOf(p.dir), '/'), p.name...))
	case p.links == 0:
		return ""
	}
	return r.nameOf(p.object)
}

// object is the place of a descriptor.
func (r *request) object(fd int) (place, *lookupError) {
	p := place{dir: -1, object: fd, exists: true}
	if errno := r.stat(fd, "", &p.facts); errno != 0 {
		p.close()
		return p, &lookupError{errno: errno}
	}
	return p, nil
}

// A walk resolves a name component by component, for names with symbolic links.
type walk struct {
	*request
	at    int    // the directory that was reached; it is the walk's
	rest  string // the name behind it
	links int
}

// walk resolves a name from a directory, which it closes unless it is shared.
func (r *request) walk(base int, shared bool, name string, follow bool) (place, *lookupError) {
	if shared {
		own, errno := dup(base)
		if errno != 0 {
			return noPlace(), &lookupError{errno: errno}
		}
		base = own
	}
	w := walk{request: r, at: base, rest: strings.TrimLeft(name, "/")}
	defer func() {
		if w.at >= 0 {
			unix.Close(w.at)
		}
	}()
	for {
		part, rest, _ := strings.Cut(w.rest, "/")
		w.rest = strings.TrimLeft(rest, "/")
		last := w.rest == ""
		if part == "" || part == "." || part == ".." {
			if part == ".." {
				if errno := w.enter(part); errno != 0 {
					return w.fail(errno, part)
				}
			}
			if last {
				return r.object(w.take())
			}
			continue
		}
		p := place{dir: w.at, name: part, object: -1}
		errno := w.look(&p)
		if !p.exists && (part == "self" || part == "thread-self") && w.isProcRoot() {
			p.exists, p.mode = true, unix.S_IFLNK // for the tasks in there, although not for this process
		}
		object := -1
		switch {
		case errno != 0:
		case p.exists && p.is(unix.S_IFLNK) && (!last || follow):
			if errno = unix.EACCES; !w.planted(&p) {
				object, errno = w.follow(part)
			}
		case last:
			p.dir = w.take()
			return p, nil
		case !p.exists:
			errno = unix.ENOENT
		default:
			errno = w.enter(part)
		}
		switch {
		case errno != 0:
			return w.fail(errno, part)
		case object >= 0 && last:
			return r.object(object)
		case object >= 0:
			w.move(object)
		}
	}
}

// enter goes on to a directory.
func (w *walk) enter(name string) syscall.Errno {
	fd, errno := openat2(w.at, name, pathFlags|unix.O_DIRECTORY, 0)
	if errno == 0 {
		w.move(fd)
	}
	return errno
}

// planted reports whether another user may have put a symbolic link into a shared directory
// for this command to fall into. By default the kernel follows no such link (protected_symlinks
// in proc_sys_fs(5)); where this process makes the call, the kernel does not see the link.
func (r *request) planted(p *place) bool {
	const shared = unix.S_ISVTX | unix.S_IWOTH
	makes := r.kind == kindConnect || r.cfg.ProtectHardLinks || r.cfg.Asking != nil
	return makes && p.parent.mode&shared == shared && p.uid != p.parent.uid && int(p.uid) != unix.Geteuid()
}

// follow puts the text of a symbolic link before the rest of the name. For a link of a
// process file system that leads to a file, whatever its text says, it opens that file
// and returns its descriptor; -1 for others.
func (w *walk) follow(part string) (object int, errno syscall.Errno) {
	if w.links++; w.links > maxLinks {
		return -1, unix.ELOOP
	}
	var text string
	if w.isProc() {
		if text = w.ownEntry(part); text == "" {
			fd, err := unix.Openat(w.at, part, unix.O_PATH|unix.O_CLOEXEC, 0)
			errno, _ := err.(syscall.Errno) //nolint:errorlint // x/sys returns the number itself
			return fd, errno
		}
	} else {
		n, err := unix.Readlinkat(w.at, part, w.link[:])
		if err != nil || n == 0 || n == len(w.link) {
			return -1, unix.ENOENT
		}
		text = string(w.link[:n])
	}
	if text[0] == '/' {
		root, shared, errno := w.rootDir()
		if shared {
			root, errno = dup(root)
		}
		if errno != 0 {
			return -1, errno
		}
		w.move(root)
	}
	w.rest = strings.TrimLeft(join(text, w.rest), "/")
	return -1, 0
}

// take gives the directory that was reached to the caller.
func (w *walk) take() int {
	fd := w.at
	w.at = -1
	return fd
}

func (w *walk) move(fd int) {
	unix.Close(w.at)
	w.at = fd
}

func (w *walk) fail(errno syscall.Errno, part string) (place, *lookupError) {
	return noPlace(), &lookupError{errno: errno, path: join(w.nameOf(w.at)+"/"+part, w.rest)}
}

// join joins two parts of a name, of which the second may be empty.
func join(a, b string) string {
	if b == "" {
		return a
	}
	return strings.TrimRight(a, "/") + "/" + b
}

// isProc reports whether the directory that was reached lies in a process file system.
func (w *walk) isProc() bool {
	var st unix.Statfs_t
	return unix.Fstatfs(w.at, &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// isProcRoot reports whether it is the top of one.
func (w *walk) isProcRoot() bool {
	const rootIno = 1 // PROC_ROOT_INO of linux/proc_ns.h
	var f facts
	return w.isProc() && w.stat(w.at, "", &f) == 0 && f.ino == rootIno
}

// ownEntry returns what a link to a task's own entry means for that task, with the
// numbers of its own process namespace; empty for all other links.
func (w *walk) ownEntry(part string) string {
	switch {
	case part != "self" && part != "thread-self" && part != "net" && part != "mounts" || !w.isProcRoot():
		return ""
	case part == "net" || part == "mounts":
		return "self/" + part
	}
	process, thread := lastWord(w.status("NStgid:")), lastWord(w.status("NSpid:"))
	switch {
	case process == "" || thread == "":
		return ""
	case part == "self":
		return process
	}
	return process + "/task/" + thread
}

func lastWord(s string) string {
	return s[strings.LastIndexAny(s, " \t")+1:]
}
