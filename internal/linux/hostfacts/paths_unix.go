// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package hostfacts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Look says what exists at a path that has no symbolic link in it.
func Look(real string) (plan.Spot, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(real, &st); err != nil {
		return plan.Spot{}, err
	}
	return SpotOf(real, &st), nil
}

// SpotOf is Look for what stat(2) has returned.
func SpotOf(real string, st *syscall.Stat_t) plan.Spot {
	s := plan.Spot{Path: real, ID: launch.ID{Dev: uint64(st.Dev), Ino: st.Ino}} //nolint:unconvert,nolintlint // a signed number on macOS
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		s.Kind = plan.KindDirectory
	case syscall.S_IFREG:
		s.Kind = plan.KindFile
	case syscall.S_IFLNK:
		s.Kind = plan.KindLink
	default:
		s.Kind = plan.KindOther
	}
	return s
}

// Reason returns the cause of a file system error without its path, which the sentence
// around it names already.
func Reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// KindWord names what is neither a directory nor a regular file.
func KindWord(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// Below reports whether name is the directory dir or lies in it.
func Below(name, dir string) bool { return safefile.Within(name, dir) }

// maxLinks bounds the symbolic links on one way, as the kernel does (path_resolution(7)).
const maxLinks = 40

// Links lists the symbolic links on the way to a path, in the order in which the
// kernel meets them. No link is above the path of one that it returns.
func Links(name string) []plan.Link {
	_, links, _ := Walk(name, nil) // what cannot be walked further has no more links
	return links
}

// Walk follows an absolute path as the kernel does. It returns the path without symbolic
// links, and the links on the way. Of a path that does not exist, the part that does is
// resolved. After an error the links until there are returned.
//
// Stored, unless it is nil, returns the name by which a directory stores an entry, which may
// be found by other spellings.
func Walk(name string, stored func(dir, entry string,
	info fs.FileInfo) string) (real string, links []plan.Link, err error) {
	name = filepath.Clean(name)
	if _, direct := Direct(name); direct && stored == nil {
		return name, nil, nil // most paths
	}
	at, rest := "/", strings.Split(name, "/")
	for len(rest) > 0 {
		next := filepath.Join(at, rest[0]) // also for "..", as no link is in at
		st, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return filepath.Join(next, filepath.Join(rest[1:]...)), links, nil
		}
		if err != nil {
			return "", links, err
		}
		if stored != nil && next != at && next != filepath.Dir(at) {
			next = filepath.Join(at, stored(at, rest[0], st))
		}
		rest = rest[1:]
		if st.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		dest, err := os.Readlink(next)
		if err == nil && len(links) == maxLinks {
			err = syscall.ELOOP
		}
		if err != nil {
			return "", links, err
		}
		links = append(links, plan.Link{Path: next, Dest: dest})
		if filepath.IsAbs(dest) {
			at = "/"
		}
		rest = append(strings.Split(dest, "/"), rest...)
	}
	return at, links, nil
}

// Repository returns the top of the git repository that a directory of this user's is in, or "". A directory
// above that another user has ends the search: a repository could have been put there. For root the owner of
// the directory counts as well.
func Repository(dir string) string {
	var st syscall.Stat_t
	at := RealPath(dir)
	if syscall.Lstat(at, &st) != nil {
		return ""
	}
	user, owner := os.Geteuid(), int(st.Uid)
	mine := func(name string) bool {
		return syscall.Lstat(name, &st) == nil && st.Mode&syscall.S_IFMT != syscall.S_IFLNK &&
			(int(st.Uid) == user || user == 0 && int(st.Uid) == owner)
	}
	for ; at != "/" && mine(at); at = filepath.Dir(at) {
		if mine(filepath.Join(at, ".git")) {
			return at
		}
	}
	return ""
}
