// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"golang.org/x/sys/unix"
)

// EvalSymlinks is [filepath.EvalSymlinks]. Most paths have no symbolic link in them,
// and the kernel says so faster than a look at every folder on the way.
func EvalSymlinks(name string) (string, error) {
	if filepath.IsAbs(name) {
		fd, err := unix.Openat2(unix.AT_FDCWD, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err == nil {
			unix.Close(fd)
			return filepath.Clean(name), nil
		}
	}
	return filepath.EvalSymlinks(name)
}

// Look says what stands at a path that has no symbolic link in it.
func Look(real string) (plan.Spot, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(real, &st); err != nil {
		return plan.Spot{}, err
	}
	return SpotOf(real, &st), nil
}

// SpotOf is look for what was looked at.
func SpotOf(real string, st *syscall.Stat_t) plan.Spot {
	s := plan.Spot{Path: real, ID: launch.ID{Dev: st.Dev, Ino: st.Ino}}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		s.Kind = plan.KindFolder
	case syscall.S_IFREG:
		s.Kind = plan.KindFile
	default:
		s.Kind = plan.KindOther
	}
	return s
}

// Reason is the cause of a file system error without its path, which the
// sentence around it names already.
func Reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

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

// Below reports whether name is folder or lies in it.
func Below(name, folder string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// Deepest resolves the symbolic links of the part of a path that exists.
func Deepest(name string) string {
	rest := ""
	for at := name; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return name
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

// maxLinks bounds the symbolic links on one way, as the kernel does (path_resolution(7)).
const maxLinks = 40

// Links lists the symbolic links on the way to a path, in the order in which the
// kernel meets them. No link is above the path of one that it returns.
func Links(name string) []plan.Link {
	var links []plan.Link
	at, rest := "/", strings.Split(filepath.Clean(name), "/")
	for len(rest) > 0 && len(links) < maxLinks {
		part := rest[0]
		rest = rest[1:]
		next := filepath.Join(at, part) // also for "..", as no link is in at
		st, err := os.Lstat(next)
		if err != nil {
			break
		}
		if st.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		dest, err := os.Readlink(next)
		if err != nil || dest == "" {
			break
		}
		links = append(links, plan.Link{Path: next, Dest: dest})
		if filepath.IsAbs(dest) {
			at = "/"
		}
		rest = append(strings.Split(dest, "/"), rest...)
	}
	return links
}
