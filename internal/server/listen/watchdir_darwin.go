// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A dirWatch tells of names that come to or go from directories.
type dirWatch struct {
	queue int
	dirs  []*os.File
	end   [2]*os.File // of a pipe that ends a wait
	once  sync.Once
}

// watchDirs begins to watch directories; those that do not exist are left out.
func watchDirs(all []string) (*dirWatch, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return nil, os.NewSyscallError("kqueue", err)
	}
	unix.CloseOnExec(queue)
	w := &dirWatch{queue: queue}
	if w.end[0], w.end[1], err = os.Pipe(); err != nil {
		return nil, errors.Join(err, unix.Close(queue))
	}
	events := []unix.Kevent_t{{Ident: uint64(w.end[0].Fd()), Filter: unix.EVFILT_READ, Flags: unix.EV_ADD}}
	for _, dir := range all {
		f, err := os.Open(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			w.close()
			return nil, errors.Join(err, w.free())
		}
		w.dirs = append(w.dirs, f)
		events = append(events, unix.Kevent_t{Ident: uint64(f.Fd()), Filter: unix.EVFILT_VNODE,
			Flags: unix.EV_ADD | unix.EV_CLEAR, Fflags: unix.NOTE_WRITE})
	}
	if _, err := unix.Kevent(queue, events, nil, nil); err != nil {
		w.close()
		return nil, errors.Join(os.NewSyscallError("kevent", err), w.free())
	}
	return w, nil
}

// wait blocks until something has changed since the last call. The error is that of close.
func (w *dirWatch) wait() error {
	for {
		got := make([]unix.Kevent_t, 1)
		n, err := unix.Kevent(w.queue, nil, got, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil, n == 1 && got[0].Filter == unix.EVFILT_READ:
			return errors.Join(os.ErrClosed, err, w.free())
		default:
			return nil
		}
	}
}

// close ends a wait, which frees what the watch holds.
func (w *dirWatch) close() { w.once.Do(func() { _ = w.end[1].Close() }) }

func (w *dirWatch) free() error {
	for _, f := range append(w.dirs, w.end[0]) {
		_ = f.Close() // it was only looked at
	}
	return unix.Close(w.queue)
}
