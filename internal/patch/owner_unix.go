// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package patch

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

const noWait = safefile.NoWait

var errOwner = errors.New("it belongs to another user, and only root can give its new content to that one")

// keepOwner gives a file the owner of the one that it replaces, and its group where the user may.
func keepOwner(f *os.File, replaced fs.FileInfo) error {
	old, ok := replaced.Sys().(*syscall.Stat_t)
	info, err := f.Stat()
	if err != nil || !ok {
		return err
	}
	now, ok := info.Sys().(*syscall.Stat_t)
	if !ok || now.Uid == old.Uid && now.Gid == old.Gid {
		return nil
	}
	if now.Gid != old.Gid {
		_ = f.Chown(-1, int(old.Gid)) // only the groups of the user
	}
	if now.Uid == old.Uid {
		return nil
	}
	if err := f.Chown(int(old.Uid), -1); err != nil {
		return errOwner
	}
	return nil
}
