// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// An ident tells one directory from every other that was ever at its name: device and
// inode, and the time of birth in nanoseconds, because the inode of a removed directory
// is used again. A zero time means that the file system has none.
type ident struct {
	dev, ino uint64
	born     int64
}

// same reports whether a and b are one directory.
func (a ident) same(b ident) bool {
	return a.dev == b.dev && a.ino == b.ino && (a.born == b.born || a.born == 0 || b.born == 0)
}

// A status is what exists at a name, links not followed.
type status struct {
	ident
	mode uint16 // with the type, as in stat(2)
	uid  uint32
}

// statAt looks at name in the directory dir. A name that does not exist is ENOENT. An
// empty name is the directory itself.
func statAt(dir int, name string) (status, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var stx unix.Statx_t
	if err := retry(func() error {
		return unix.Statx(dir, name, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &stx)
	}); err != nil {
		return status{}, err
	}
	s := status{ident: ident{dev: unix.Mkdev(stx.Dev_major, stx.Dev_minor), ino: stx.Ino},
		mode: stx.Mode, uid: stx.Uid}
	if stx.Mask&unix.STATX_BTIME != 0 {
		s.born = stx.Btime.Sec*1e9 + int64(stx.Btime.Nsec)
	}
	return s, nil
}

// listAt lists the directory dir, where so many of its names are asked about that this is faster.
func listAt(dir, asked int) safefile.Listing {
	const several, most = 8, 4096
	if asked < several {
		return safefile.Listing{}
	}
	fd, err := openAt(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return safefile.Listing{} // each name is looked at
	}
	f := os.NewFile(uintptr(fd), ".")
	defer f.Close()
	return safefile.List(f, most)
}

// retry calls f again as long as a signal interrupts it.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// openAt is openat(2), close-on-exec and with no symbolic link followed.
func openAt(dir int, name string, flags int) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		return err
	})
	return fd, err
}

func (s status) isDir() bool { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// owned reports whether s belongs to this user.
func (s status) owned() bool { return s.uid == uint32(unix.Geteuid()) }

func (s status) kind() Kind {
	switch s.mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return KindDirectory
	case unix.S_IFLNK:
		return KindLink
	case unix.S_IFIFO:
		return KindPipe
	case unix.S_IFSOCK:
		return KindSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		return KindDevice
	}
	return KindFile
}

// openDir opens a directory as a place (O_PATH), with no symbolic link on the way. Where that
// fails it walks: filters of containers may lack openat2(2).
func openDir(path string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	fd, err = openAt(unix.AT_FDCWD, "/", flags)
	if err != nil {
		return -1, err
	}
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' }) {
		next, err := openAt(fd, name, flags)
		if errors.Is(err, unix.ENOTDIR) {
			if s, e := statAt(fd, name); e == nil && s.kind() == KindLink {
				err = unix.ELOOP
			}
		}
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// closedByUser reports whether the way to the directory path is barred by a directory of
// this user, which a command could open.
func closedByUser(path string) bool {
	for p := filepath.Dir(path); ; p = filepath.Dir(p) {
		fd, err := openDir(p)
		if err == nil {
			// This is the first directory that can be reached, and it cannot be searched.
			s, err := statAt(fd, "")
			unix.Close(fd)
			return err != nil || s.owned()
		}
		if !errors.Is(err, unix.EACCES) || p == "/" {
			return true
		}
	}
}

// fdPath names an open file for calls that take a path.
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
