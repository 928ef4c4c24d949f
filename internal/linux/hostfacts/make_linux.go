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

	"golang.org/x/sys/unix"
)

// ErrOthers says that a directory cannot be made by this user, nor by any command.
var ErrOthers = errors.New("the directory is another user's")

// MakeDirectories makes a directory and those on the way to it, with the owner and the rights
// to read of the directory that exists: root may run commands for another user. It follows no
// link.
func MakeDirectories(path string) error {
	at := filepath.Dir(path)
	var st syscall.Stat_t
	for ; ; at = filepath.Dir(at) {
		if err := syscall.Lstat(at, &st); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			break
		}
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, at,
		&unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer func() { unix.Close(fd) }()
	for part := range strings.SplitSeq(strings.TrimPrefix(path[len(at):], "/"), "/") {
		err := unix.Mkdirat(fd, part, 0o700)
		if errors.Is(err, unix.EROFS) || errors.Is(err, unix.EACCES) && int(st.Uid) != os.Geteuid() {
			return ErrOthers
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		next, oerr := unix.Openat(fd, part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if oerr != nil {
			return oerr
		}
		unix.Close(fd)
		fd = next
		if err == nil {
			// only root can, and only to users that it knows here
			_ = unix.Fchown(fd, int(st.Uid), int(st.Gid))
			if err := unix.Fchmod(fd, st.Mode&0o755|0o700); err != nil {
				return err
			}
		}
	}
	return nil
}
