// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A watch tells of names that come to or go from directories.
type watch struct {
	queue int
	dirs  map[string]*os.File
	end   [2]*os.File // of a pipe that ends a wait
	once  sync.Once
}

func newWatch() (*watch, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return nil, os.NewSyscallError("kqueue", err)
	}
	unix.CloseOnExec(queue)
	w := &watch{queue: queue, dirs: map[string]*os.File{}}
	if w.end[0], w.end[1], err = os.Pipe(); err != nil {
		return nil, errors.Join(err, unix.Close(queue))
	}
	if err := w.listen(w.end[0], unix.EVFILT_READ, 0, 0); err != nil {
		w.close()
		return nil, errors.Join(err, w.free())
	}
	return w, nil
}

func (w *watch) listen(f *os.File, filter int16, flags uint16, what uint32) error {
	_, err := unix.Kevent(w.queue, []unix.Kevent_t{{Ident: uint64(f.Fd()), Filter: filter,
		Flags: unix.EV_ADD | flags, Fflags: what}}, nil, nil)
	return os.NewSyscallError("kevent", err)
}

// add watches directories that are not watched already; those that cannot be read are left out.
func (w *watch) add(all []string) error {
	for _, dir := range all {
		if w.dirs[dir] != nil {
			continue
		}
		f, err := os.Open(dir)
		if err != nil {
			continue
		}
		w.dirs[dir] = f
		if err := w.listen(f, unix.EVFILT_VNODE, unix.EV_CLEAR, unix.NOTE_WRITE); err != nil {
			return err
		}
	}
	return nil
}

// wait blocks until something has changed since the last call. The error is that of close.
func (w *watch) wait() error {
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
func (w *watch) close() { w.once.Do(func() { _ = w.end[1].Close() }) }

func (w *watch) free() error {
	for _, f := range w.dirs {
		_ = f.Close() // it was only looked at
	}
	return errors.Join(w.end[0].Close(), unix.Close(w.queue))
}
