// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// UpperDir is the name of the directory that gets what is written; see [Make].
const UpperDir = "upper"

// WorkDir is the name of the kernel's own directory beside it.
const WorkDir = "work"

// Make makes the two directories that an overlay needs in a directory, which is made as well. They may exist.
func Make(dir string) (upper, work string, err error) {
	upper, work = filepath.Join(dir, UpperDir), filepath.Join(dir, WorkDir)
	return upper, work, MakeDirs(dir, upper, work)
}

// MakeDirs makes directories that may exist, for this user alone.
func MakeDirs(dirs ...string) error {
	for _, d := range dirs {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// OpenLocked opens and locks a directory; how is that of flock(2). The error matches [fs.ErrNotExist] if it
// was removed meanwhile: a lock on a directory without a name protects nothing.
func OpenLocked(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err = safefile.Lock(f, how); err == nil {
		var locked, named os.FileInfo
		if locked, err = f.Stat(); err == nil {
			named, err = os.Lstat(dir)
		}
		if err == nil && !os.SameFile(locked, named) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Unlock unlocks and closes what [OpenLocked] has opened; nil is nothing. A child that is being started at
// this moment has a copy of the descriptor, so closing alone would not unlock.
func Unlock(f *os.File) {
	if f != nil {
		_ = safefile.Lock(f, unix.LOCK_UN)
		f.Close()
	}
}

// InUse reports whether a process holds a lock on a directory. It takes the lock for a moment.
func InUse(dir string) bool {
	f, err := OpenLocked(dir, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, unix.EWOULDBLOCK)
}

// Unmark removes the marks with which the kernel refuses to mount an overlay again, such as that of a
// volatile one: after a crash of the machine, the upper directory may lack what was written last. The marks'
// directories have mode 000.
func Unmark(work string) error {
	inner := filepath.Join(work, "work")
	mark := filepath.Join(inner, "incompat")
	_ = unix.Unlink(filepath.Join(mark, "volatile", "dirty"))
	_ = unix.Rmdir(filepath.Join(mark, "volatile"))
	if err := unix.Rmdir(mark); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// An unknown mark or, for an ordinary user, a directory that is closed. The kernel
	// makes inner anew.
	return safefile.RemoveTreePath(inner)
}
