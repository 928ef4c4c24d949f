// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A tree is an open directory. Paths below it are short and do not leave it.
type tree struct{ fd int }

// openTree opens a directory. It fails if a symbolic link is on the way to it.
func openTree(path string) (tree, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
	fd, err := unix.Openat2(unix.AT_FDCWD, path,
		&unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if filtered(err) {
		if real, evalErr := filepath.EvalSymlinks(path); evalErr != nil || real != path {
			return tree{}, unix.ELOOP
		}
		fd, err = unix.Open(path, flags|unix.O_NOFOLLOW, 0)
	}
	return tree{fd}, err
}

// direct is follow for an absolute and clean path of a directory, or of nothing, that has no
// symbolic link in it as far as it exists. It is false for other paths.
func direct(path string) (trail, bool) {
	t, err := openTree(path)
	if err != nil {
		return trail{real: path, missing: true}, errors.Is(err, unix.ENOENT)
	}
	t.close()
	return trail{real: path, mode: fs.ModeDir}, true
}

// filtered reports whether openat2(2) is not available: the kernel is old, or a
// filter of system calls denies it.
func filtered(err error) bool { return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) }

func (t tree) close() { _ = unix.Close(t.fd) }

// stat returns the stamp of what has the path below the tree, and its type: zero,
// [fs.ModeDir], or [fs.ModeIrregular] for anything else.
func (t tree) stat(path string) (stamp, fs.FileMode, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(t.fd, dotted(path), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return stamp{}, 0, err
	}
	mode := fs.ModeIrregular
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		mode = fs.ModeDir
	case unix.S_IFREG:
		mode = 0
	}
	return stampOf(&st), mode, nil
}

// holdsNoFiles reports whether the directory with the path below the tree is of a file system
// without files that last.
func (t tree) holdsNoFiles(path string) bool {
	switch t.fileSystem(path) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.AUTOFS_SUPER_MAGIC,
		unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC,
		unix.DEVPTS_SUPER_MAGIC:
		return true
	}
	return false
}

// fileSystem returns the kind of file system of the directory with the path below the tree, zero
// if it is not known. Nothing is mounted by the question.
func (t tree) fileSystem(path string) int64 {
	fd, err := unix.Openat(t.fd, dotted(path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return 0
	}
	return int64(st.Type) & math.MaxUint32 //nolint:unconvert // its type differs between architectures
}

// enterable reports whether this user may open files by name in the directory with the path
// below the tree, or give itself the right to.
func (t tree) enterable(path string) bool {
	var st unix.Stat_t
	return unix.Fstatat(t.fd, dotted(path), &st, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		int(st.Uid) == os.Geteuid() ||
		unix.Faccessat(t.fd, dotted(path), unix.X_OK, unix.AT_EACCESS) == nil
}

// keepsTimes reports whether a file system notes each change of a directory in a time that no
// program can set. Servers and programs that make up file systems may say what they like, and
// some that know no such time answer with one that can be set.
func (t tree) keepsTimes(path string) bool {
	const f2fs, zfs, bcachefs = 0xf2f52010, 0x2fc12fc1, 0xca451a4e
	switch t.fileSystem(path) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, f2fs, zfs, bcachefs:
		return true // the first one is of ext2 and ext3 as well
	}
	return false
}

// readlink returns the text of the symbolic link with the path below the tree.
func (t tree) readlink(path string) (string, error) {
	var text [unix.PathMax]byte
	n, err := unix.Readlinkat(t.fd, path, text[:])
	return string(text[:max(n, 0)]), err
}

// open opens the directory with the path below the tree. No part of the path may be
// a symbolic link: there was none when the path was found.
func (t tree) open(path string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat2(t.fd, dotted(path),
		&unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	if filtered(err) {
		fd, err = unix.Openat(t.fd, dotted(path), flags, 0)
	}
	if err != nil {
		return nil, err
	}
	// On a file system that does not tell the types of names, package os looks at each
	// by the name of the file.
	return os.NewFile(uintptr(fd), "/proc/self/fd/"+strconv.Itoa(fd)), nil
}

// openUp gives this user, who owns a directory, the rights to it that a command took away, and
// reports whether it did. By name, a link that has replaced the directory would be followed.
func openUp(dir string) bool {
	t, err := openTree(dir)
	if err != nil {
		return false
	}
	defer t.close()
	var st unix.Stat_t
	return unix.Fstat(t.fd, &st) == nil && int(st.Uid) == os.Geteuid() &&
		unix.Chmod("/proc/self/fd/"+strconv.Itoa(t.fd), st.Mode&0o7777|0o700) == nil
}

func dotted(path string) string {
	if path == "" {
		return "."
	}
	return path
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{
		modified: unix.TimespecToNsec(st.Mtim), changed: unix.TimespecToNsec(st.Ctim),
		inode: st.Ino, device: uint64(st.Dev), //nolint:unconvert // its type differs between architectures
		size: st.Size,
	}
}

// lstatStamp returns the stamp of what has the path.
func lstatStamp(path string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return stamp{}, err
	}
	return stampOf(&st), nil
}

// manyNames reports whether a file has more than one name.
func manyNames(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Nlink > 1
}
