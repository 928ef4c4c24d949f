// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A watch tells of names that come to or go from directories, and of files in them that were written.
type watch struct{ events *os.File }

func newWatch() (*watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	return &watch{os.NewFile(uintptr(fd), "inotify")}, nil
}

// add watches directories, also those that are watched already; those that cannot be read are left out.
func (w *watch) add(all []string) error {
	const what = unix.IN_CREATE | unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO | unix.IN_DELETE | unix.IN_ONLYDIR
	events, err := w.events.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = events.Control(func(fd uintptr) {
		for _, dir := range all {
			_, err := unix.InotifyAddWatch(int(fd), dir, what)
			switch {
			case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES):
			case err != nil:
				failed = &fs.PathError{Op: "watch", Path: dir, Err: err}
				return
			}
		}
	})
	return errors.Join(err, failed)
}

// wait blocks until something has changed since the last call. The error is that of close.
func (w *watch) wait() error {
	buf := make([]byte, 64<<10) // what happened is not read: the directories are looked at again
	_, err := w.events.Read(buf)
	return err
}

// close ends a wait, and all later ones.
func (w *watch) close() { _ = w.events.Close() }
