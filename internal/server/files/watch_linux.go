// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CanWatch says whether NewWatch is supported on this system.
const CanWatch = true

// A Watch waits for paths that are missing.
type Watch struct {
	events *os.File // of inotify
	paths  []string
}

// NewWatch begins to watch for paths that are missing. The caller must call Wait, which ends the
// watch.
func NewWatch(paths []string) (*Watch, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &Watch{events: os.NewFile(uintptr(fd), "inotify"), paths: paths}
	if _, err := w.look(); err != nil {
		return nil, errors.Join(err, w.events.Close())
	}
	return w, nil
}

// Wait blocks until one of the paths exists, or ctx has ended, whose error it returns then.
func (w *Watch) Wait(ctx context.Context) error {
	defer w.events.Close()
	defer context.AfterFunc(ctx, func() { _ = w.events.Close() })()
	buf := make([]byte, 64<<10) // what happened is not read: all paths are looked at again
	for {
		there, err := w.look()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case there || err != nil:
			return err
		}
		if _, err := w.events.Read(buf); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return err
		}
	}
}

// look watches the nearest directory above each path that exists, and reports whether one of the
// paths does.
func (w *Watch) look() (there bool, err error) {
	for _, path := range w.paths {
		if exists(path) {
			return true, nil
		}
		// What is made below a directory before it is watched is found by looking again.
		for watched := ""; ; {
			dir := nearest(path)
			if dir == watched {
				break
			}
			err := w.watch(dir)
			switch {
			case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
				continue // it went meanwhile
			case err != nil:
				return false, err
			}
			watched = dir
		}
		if exists(path) {
			return true, nil
		}
	}
	return false, nil
}

// watch adds a directory.
func (w *Watch) watch(dir string) error {
	conn, err := w.events.SyscallConn()
	if err != nil {
		return err
	}
	const what = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	var failed error
	if err := conn.Control(func(fd uintptr) {
		_, failed = unix.InotifyAddWatch(int(fd), dir,
			what)
	}); err != nil {
		return err
	}
	if failed != nil {
		return &fs.PathError{Op: "watch", Path: dir, Err: failed}
	}
	return nil
}

// exists reports whether a path leads to something.
func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !isOurs(path, info.Mode().Type())
}

// nearest returns the nearest directory above a path that exists.
func nearest(path string) string {
	for {
		path = filepath.Dir(path)
		if info, err := os.Stat(path); err == nil && info.IsDir() || filepath.Dir(path) == path {
			return path
		}
	}
}
