// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A dirWatch tells of names that come to or go from directories, and of files in them that change.
type dirWatch struct{ events *os.File }

// watchDirs begins to watch directories; those that do not exist are left out.
func watchDirs(all []string) (*dirWatch, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &dirWatch{os.NewFile(uintptr(fd), "inotify")}
	const what = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_MOVED_TO | unix.IN_DELETE | unix.IN_ONLYDIR
	for _, dir := range all {
		if _, err := unix.InotifyAddWatch(fd, dir, what); err != nil && !errors.Is(err, unix.ENOENT) {
			w.close()
			return nil, &fs.PathError{Op: "watch", Path: dir, Err: err}
		}
	}
	return w, nil
}

// wait blocks until something has changed since the last call. The error is that of close.
func (w *dirWatch) wait() error {
	buf := make([]byte, 64<<10) // what happened is not read: the directories are looked at again
	_, err := w.events.Read(buf)
	return err
}

// close ends a wait, and all later ones.
func (w *dirWatch) close() { _ = w.events.Close() }
