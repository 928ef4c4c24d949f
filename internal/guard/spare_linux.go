// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Placeholders come and go with every run. To make a folder and to free it again takes
// some file systems a fifth of a millisecond, because they tell the device and wait; to
// move one takes microseconds. So a few that have gone are kept beside the journal for
// the next ones, where both are on one file system.
//
// Moving a folder that nobody may write takes rights over it that only root has: its
// link to the folder above changes. Others make and remove theirs.

const (
	sparePrefix = "s-"
	mostSpares  = 8 // two runs with every name missing
)

func spareName(i int) string { return sparePrefix + strconv.Itoa(i) }

// spares reports whether folders can be moved between the journal and dir.
func (j *journal) spares(dir int) bool {
	if unix.Geteuid() != 0 {
		return false
	}
	ours, err := lookAt(j.dir, "")
	theirs, err2 := lookAt(dir, "")
	return err == nil && err2 == nil && ours.dev == theirs.dev
}

// takeSpare moves a kept folder to name in dir, where nothing stands, and reports
// whether it did. The journal is locked.
func (j *journal) takeSpare(dir int, name string) bool {
	if !j.spares(dir) {
		return false
	}
	for i := range mostSpares {
		spare := spareName(i)
		l, err := lookAt(j.dir, spare)
		if err != nil || !l.closed() || l.uid != 0 || !emptyFolder(j.dir, spare) {
			continue
		}
		return unix.Renameat2(j.dir, spare, dir, name, unix.RENAME_NOREPLACE) == nil
	}
	return false
}

// keepSpare moves name in dir, which is the folder of ours that was looked at as l,
// beside the journal, and reports whether it did. What was filled or exchanged in that
// moment is moved back. An error says that it could not, and where it is. The journal
// is locked.
func (j *journal) keepSpare(dir int, name string, l look) (bool, error) {
	if !l.closed() || l.uid != 0 || !j.spares(dir) || !emptyFolder(dir, name) {
		return false, nil
	}
	for i := range mostSpares {
		spare := spareName(i)
		err := unix.Renameat2(dir, name, j.dir, spare, unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return false, nil //nolint:nilerr // the caller has another way, which tells what is wrong
		}
		j.at("folder moved")
		if now, err := lookAt(j.dir, spare); err == nil && now.same(l.ident) && now.closed() && emptyFolder(j.dir, spare) {
			return true, nil
		}
		if err := unix.Renameat2(j.dir, spare, dir, name, unix.RENAME_NOREPLACE); err != nil {
			return false, fmt.Errorf("something was put there in the moment it was taken away, and is %s now: %w", where(j.dir, spare), err)
		}
		return false, nil
	}
	return false, nil
}

// dropSpares removes the folders that are kept, but for one that holds something. The
// journal is locked.
func (j *journal) dropSpares() {
	for i := range mostSpares {
		_ = unix.Unlinkat(j.dir, spareName(i), unix.AT_REMOVEDIR)
	}
}

// emptyFolder reports whether name in dir is a folder with nothing in it.
func emptyFolder(dir int, name string) bool {
	fd, err := openRetry(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var buf [1024]byte // . and .., and the beginning of something else
	names := make([]string, 0, 1)
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if err != nil {
			return false
		}
		if n <= 0 {
			return true
		}
		if _, _, names = unix.ParseDirent(buf[:n], 1, names); len(names) > 0 {
			return false
		}
	}
}

// where names a file in an open folder, for people.
func where(dir int, name string) string {
	var buf [4096]byte
	n, err := unix.Readlink(fdPath(dir), buf[:])
	if err != nil {
		n = 0
	}
	return filepath.Join(string(buf[:n]), name)
}
