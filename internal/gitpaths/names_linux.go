// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitpaths

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// A rootHandle is an open folder; paths below it are short, and stay below it.
type rootHandle struct {
	fd    int
	space []byte // for names
}

func openRoot(path string) (rootHandle, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	return rootHandle{fd: fd, space: make([]byte, 32<<10)}, err
}

// openPlain opens the folder path for stat if no symbolic link is on the way to it.
func openPlain(path string) (rootHandle, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
		})
	})
	return rootHandle{fd: fd}, err
}

func (h rootHandle) close() { _ = unix.Close(h.fd) }

// stat returns the stamp of what has the relative path, and whether it is a folder.
func (h rootHandle) stat(path string) (stamp, bool, error) {
	if path == "" {
		path = "."
	}
	var st unix.Stat_t
	if err := unix.Fstatat(h.fd, path, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return stamp{}, false, err
	}
	isFolder := st.Mode&unix.S_IFMT == unix.S_IFDIR
	return stampOf(&st), isFolder, nil
}

// read calls yield for the names in the folder with the relative path, until that
// returns false. The stamp is from before; it is zero if there is no such folder.
func (h rootHandle) read(path string, yield func(name []byte, kind entryKind) bool) (stamp, error) {
	if path == "" {
		path = "."
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	fd, err := retry(func() (int, error) {
		// No folder of a path is a symbolic link: such a one was not there when it was found.
		return unix.Openat2(h.fd, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EAGAIN) { // old kernel, a filter, a rename
		fd, err = retry(func() (int, error) { return unix.Openat(h.fd, path, flags, 0) })
	}
	if err != nil {
		if errors.Is(err, unix.EACCES) {
			if st, isFolder, statErr := h.stat(path); statErr == nil && isFolder {
				return st, err
			}
		}
		return stamp{}, err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return stamp{}, err
	}
	return stampOf(&st), readNames(fd, h.space, yield)
}

// readFolder calls yield for the names in a folder, until that returns false.
func readFolder(path string, yield func(name []byte, kind entryKind) bool) error {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	})
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return readNames(fd, make([]byte, 2<<10), yield) // two calls for the hooks that git brings
}

// The layout of struct linux_dirent64, getdents64(2).
const (
	direntSize = 16 // offset of d_reclen
	direntType = 18
	direntName = 19
)

// readNames reads the names in an open folder, through space.
func readNames(fd int, space []byte, yield func(name []byte, kind entryKind) bool) error {
	for {
		n, err := retry(func() (int, error) { return unix.Getdents(fd, space) })
		if err != nil || n == 0 {
			return err
		}
		for rest := space[:n]; len(rest) > direntName; {
			size := int(rest[direntSize]) | int(rest[direntSize+1])<<8
			if size <= direntName || size > len(rest) {
				return unix.EIO // no kernel does this
			}
			name, kind := rest[direntName:size], rest[direntType]
			rest = rest[size:]
			for i, c := range name {
				if c == 0 {
					name = name[:i]
					break
				}
			}
			if string(name) == "." || string(name) == ".." {
				continue
			}
			if !yield(name, kindOf(kind)) {
				return nil
			}
		}
	}
}

func kindOf(kind byte) entryKind {
	switch kind {
	case unix.DT_DIR:
		return kindFolder
	case unix.DT_LNK:
		return kindLink
	case unix.DT_UNKNOWN:
		return kindUnknown
	}
	return kindFile
}

// stampOf returns the stamp of a folder or a file.
func stampOf(st *unix.Stat_t) stamp {
	s := stamp{
		modified: unix.TimespecToNsec(st.Mtim), changed: unix.TimespecToNsec(st.Ctim),
		inode: st.Ino, device: uint64(st.Dev), //nolint:unconvert // its type differs between architectures
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		s.size = st.Size
	}
	return s
}

// lstatStamp returns the stamp of what has the path.
func lstatStamp(path string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return stamp{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	return stampOf(&st), nil
}

// nowStamp returns the time in the unit of stamps.
func nowStamp() int64 { return time.Now().UnixNano() }
