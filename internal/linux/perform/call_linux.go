// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package perform

import (
	"path"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// An ID names a file. The number of one that was removed is used again, by a file of another type or a later
// one. The zero ID names none.
type ID struct {
	Dev, Ino uint64 // Dev has the major number in its upper half
	Type     uint16 // one of the S_IF constants
	Born     int64  // in nanoseconds; 0 where the file system does not tell
}

// A Place is what a name led to when a call was judged.
type Place struct {
	Path   string // absolute, clean and without symbolic links, as the host sees it
	Parent ID     // the directory of Path; zero is not compared
	File   ID     // what has the name; zero for what did not exist
}

// An Op is what a call does.
type Op uint8

// The operations of a [Call].
const (
	Open        Op = iota // a regular file; creates it where At.File is zero
	Mkdir                 // with Mode
	Mknod                 // a pipe or an empty regular file: Mode with its type
	Symlink               // with Text
	Unlink                // what is no directory
	Rmdir                 // a directory
	Rename                // At to To, with Flags of renameat2(2)
	Link                  // At gets the name To
	Truncate              // to Size
	Chmod                 // to Mode
	Chown                 // to Owner and Group
	SetTimes              // to Times
	SetXattr              // Text to Value, with Flags
	RemoveXattr           // Text
)

// A Call is one call with copies of its arguments.
type Call struct {
	Op           Op
	At, To       Place // To is for Rename and Link
	Flags        int   // of open(2) or of another call, see Op
	Mode, Umask  uint32
	Size         int64
	Owner, Group int // -1 changes nothing
	Text         string
	Value        []byte
	Times        []unix.Timespec // of access and change; nil is now
}

// two reports whether To is a place.
func (c *Call) two() bool { return c.Op == Rename || c.Op == Link }

// names reports whether the call changes names in the directory of At, and not the file itself.
func (c *Call) names() bool {
	switch c.Op {
	case Mkdir, Mknod, Symlink, Unlink, Rmdir, Rename:
		return true
	case Open:
		return c.At.File == ID{}
	}
	return false
}

// Possible reports whether this process sees the places of the call as the command does, on mounts that can
// be written to.
func (c *Call) Possible() bool {
	at, errno := c.At.open()
	if errno != 0 {
		return false
	}
	defer at.close()
	looked := at.file
	if c.names() {
		looked = at.dir
	}
	if c.two() {
		to, errno := c.To.open()
		if errno != 0 {
			return false
		}
		defer to.close()
		if readOnly(to.dir) {
			return false
		}
	}
	return looked >= 0 && !readOnly(looked)
}

func readOnly(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) != nil || st.Flags&unix.ST_RDONLY != 0
}

// spot is a place that was opened and compared.
type spot struct {
	dir  int
	name string
	file int // -1 where the place had none
}

func (s *spot) close() {
	unix.Close(s.dir)
	if s.file >= 0 {
		unix.Close(s.file)
	}
}

// open opens a place. ESTALE says that something else is there now, ELOOP that it is a link.
func (p *Place) open() (spot, syscall.Errno) {
	const flags = unix.O_PATH | unix.O_CLOEXEC
	dir, name := path.Split(p.Path)
	s := spot{name: name, file: -1}
	var errno syscall.Errno
	s.dir, errno = openat2(unix.AT_FDCWD, dir, flags|unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS)
	if errno != 0 {
		return s, errno
	}
	if errno = compare(s.dir, p.Parent); errno == 0 && p.File != (ID{}) {
		if s.file, errno = openat2(s.dir, name, flags|unix.O_NOFOLLOW, 0); errno == 0 {
			errno = compare(s.file, p.File)
		}
	}
	if errno != 0 {
		s.close()
	}
	return s, errno
}

// compare returns an error for a descriptor of another file; a zero ID is not compared.
func compare(fd int, want ID) syscall.Errno {
	if want == (ID{}) {
		return 0
	}
	got, _, errno := identify(fd)
	switch {
	case errno != 0:
		return errno
	case got == want:
		return 0
	case got.Type == unix.S_IFLNK:
		return unix.ELOOP
	}
	return unix.ESTALE
}

// identify returns which file a descriptor is of, and its permissions.
func identify(fd int) (ID, uint32, syscall.Errno) {
	const want = unix.STATX_TYPE | unix.STATX_MODE | unix.STATX_INO | unix.STATX_BTIME
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, want, &st)
	return ID{uint64(st.Dev_major)<<32 | uint64(st.Dev_minor), st.Ino, st.Mode & unix.S_IFMT,
		st.Btime.Sec*1e9 + int64(st.Btime.Nsec)}, uint32(st.Mode) &^ unix.S_IFMT, number(err)
}

// openat2 opens a name.
func openat2(dir int, name string, flags, resolve uint64) (int, syscall.Errno) {
	for {
		fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: flags, Resolve: resolve})
		if errno := number(err); errno != unix.EINTR && errno != unix.EAGAIN {
			return fd, errno
		}
	}
}

// magic names what a descriptor is of, and nothing else.
func magic(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// number returns the number of an error of package unix; zero for nil.
func number(err error) syscall.Errno {
	errno, _ := err.(syscall.Errno) //nolint:errorlint // x/sys returns the number itself
	return errno
}
