// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// openDirectory are the flags that open a directory, and wait for nothing.
const openDirectory = unix.O_DIRECTORY | unix.O_NONBLOCK

// A place is a target that was reached: a name for calls that is good until close. With
// NoFollow it leads through a descriptor, and only its last component can be a link.
type place struct {
	name string
	dir  int // -1 for none
}

func (p place) close() {
	if p.dir >= 0 {
		unix.Close(p.dir)
	}
}

// locate reaches a target. For one with NoFollow, it makes directories that are missing on the
// way if asked to.
func locate(t Target, makeDirs bool) (place, error) {
	if !t.NoFollow {
		return place{t.Path, -1}, nil
	}
	at, err := openAt(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return place{}, &fs.PathError{Op: "open", Path: "/", Err: err}
	}
	above, name := path.Split(strings.TrimPrefix(t.Path, "/"))
	for part := range strings.SplitSeq(strings.TrimSuffix(above, "/"), "/") {
		if part == "" {
			continue
		}
		next, err := step(at, part, makeDirs)
		unix.Close(at)
		if err != nil {
			return place{}, &fs.PathError{Op: "open", Path: t.Path, Err: err}
		}
		at = next
	}
	return place{procName(at) + "/" + name, at}, nil
}

// step opens the directory name in dir. A link is none: ENOTDIR.
func step(dir int, name string, makeDirs bool) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW
	next, err := openAt(dir, name, flags)
	if errors.Is(err, unix.ENOENT) && makeDirs {
		if err = unix.Mkdirat(dir, name, 0o777); err == nil || errors.Is(err, unix.EEXIST) {
			next, err = openAt(dir, name, flags)
		}
	}
	return next, err
}

// openPlain opens an existing regular file with flags. It looks at the file before it opens it
// for real, because to open a device can start something and to open a named pipe can wait.
func openPlain(p place, t Target, flags int) (*os.File, error) {
	found, isDir, err := look(p, t)
	if err != nil {
		return nil, err
	}
	defer unix.Close(found)
	failed := func(err error) error { return &fs.PathError{Op: "open", Path: t.Path, Err: err} }
	if isDir {
		return nil, failed(syscall.EISDIR)
	}
	// The link leads to what was looked at, whatever has the name now.
	fd, err := openAt(unix.AT_FDCWD, procName(found), flags|unix.O_NONBLOCK)
	if err != nil {
		return nil, failed(err)
	}
	return os.NewFile(uintptr(fd), t.Path), nil
}

// look opens a regular file or a directory only to name it, and reports which it is.
func look(p place, t Target) (fd int, isDir bool, err error) {
	failed := func(err error) error { return &fs.PathError{Op: "open", Path: t.Path, Err: err} }
	flags := unix.O_PATH
	if t.NoFollow {
		flags |= unix.O_NOFOLLOW
	}
	if fd, err = openAt(unix.AT_FDCWD, p.name, flags); err != nil {
		return -1, false, failed(err)
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err != nil {
		err = failed(err)
	}
	kind := st.Mode & unix.S_IFMT
	switch {
	case err != nil:
	case kind == unix.S_IFLNK:
		err = failed(unix.ELOOP) // as the system has it, and clients know it
	case kind != unix.S_IFREG && kind != unix.S_IFDIR:
		err = notPlain(t.Path)
	}
	if err != nil {
		unix.Close(fd)
		return -1, false, err
	}
	return fd, kind == unix.S_IFDIR, nil
}

// chmodPlain sets the permissions of a regular file or a directory.
func chmodPlain(p place, t Target, mode fs.FileMode) error {
	fd, _, err := look(p, t)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return os.Chmod(procName(fd), mode) // what was looked at, whatever has the name now
}

// renameNew renames without replacing.
func renameNew(from, to string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// createFlags are the flags that create a file at a place.
func createFlags(t Target) int {
	flags := unix.O_CREAT | unix.O_NONBLOCK | unix.O_NOCTTY
	if t.NoFollow {
		flags |= unix.O_NOFOLLOW | unix.O_EXCL
	}
	return flags
}

// keepOwner gives f the owner and the group of the file that it replaces.
func keepOwner(f *os.File, replaced fs.FileInfo) error {
	st, ok := replaced.Sys().(*syscall.Stat_t)
	var own unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &own); err != nil || !ok || own.Uid == st.Uid && own.Gid == st.Gid {
		return err
	}
	return f.Chown(int(st.Uid), int(st.Gid))
}

func openAt(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// procName returns a name that leads to what a descriptor has open.
func procName(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
