// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package safefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// maxDepth is how deep Remove descends with a descriptor for each level. What lies deeper is
// moved to the top first: commands can make trees deeper than the limit on open files.
const maxDepth = 32

// movedPrefix begins the names of what is moved to the top.
const movedPrefix = ".sallyport-deep-"

// RemoveTree removes name from parent with everything below it, also if directories in it lack
// permissions, and needs few descriptors however deep it is. It follows no link and leaves
// what it cannot remove; nothing at name is no error. It waits for no process, and takes as
// long as there are files.
func RemoveTree(parent *os.Root, name string) error { return RemoveTreeUntil(parent, name, nil) }

// RemoveTreeUntil is [RemoveTree] until late is closed: the error is [ErrLate] then, and what is left
// can be removed by another call. A nil late never is.
func RemoveTreeUntil(parent *os.Root, name string, late <-chan struct{}) error {
	dir, err := parent.OpenFile(".", os.O_RDONLY|NoWait, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	return RemoveTreeIn(dir, name, late)
}

// RemoveTreeIn is [RemoveTreeUntil] for an open directory.
func RemoveTreeIn(dir *os.File, name string, late <-chan struct{}) error {
	if err := removeAt(int(dir.Fd()), name, late); err != nil {
		return &os.PathError{Op: "remove", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	return nil
}

func removeAt(dir int, name string, late <-chan struct{}) error {
	if err := unlink(dir, name); !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	top, err := openDir(dir, name)
	if err != nil {
		return err
	}
	r := removal{top: top, late: late}
	for again := true; again; {
		r.moved, r.err = false, nil
		r.empty(top, 0)
		again = r.moved && !r.isLate()
	}
	top.Close()
	if err := unlink(dir, name); !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	if r.isLate() {
		return ErrLate
	}
	return errors.Join(unix.ENOTEMPTY, r.err)
}

// A removal is the work of one Remove.
type removal struct {
	top   *os.File
	late  <-chan struct{}
	names int   // given to what was moved to the top
	moved bool  // something was moved there since it was looked at
	err   error // the first one
}

// empty removes what is in a directory, except for what cannot be removed or was moved to
// the top.
func (r *removal) empty(dir *os.File, depth int) {
	for removed := true; removed; {
		removed = false
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			r.fail(err)
			return
		}
		for {
			names, err := dir.Readdirnames(256)
			tried := r.unlinkAll(int(dir.Fd()), names)
			for i, name := range names {
				if r.isLate() {
					return
				}
				if r.remove(dir, name, depth, tried[i]) {
					removed = true
				}
			}
			if err != nil || len(names) == 0 {
				break // a directory that cannot be read further is not empty, and says so
			}
		}
	}
}

func (r *removal) isLate() bool {
	select {
	case <-r.late:
		return true
	default:
		return false
	}
}

// maxUnlinks is how many names are removed at once. A file system may wait for its disk at each of them, as
// ext4 does that is mounted with discard.
const maxUnlinks = 16

// unlinkAll calls unlink for names, and returns what each call did. It stops early when it is late.
func (r *removal) unlinkAll(dir int, names []string) []error {
	const each = 8 // with fewer names for it, a thread costs more than it saves
	errs := make([]error, len(names))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(names)) && !r.isLate(); i = next.Add(1) - 1 {
			errs[i] = unlink(dir, names[i])
		}
	}
	var others sync.WaitGroup
	for range min(maxUnlinks, len(names)/each) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return errs
}

// remove removes one name from an open directory, for which unlink returned err, and reports whether the
// directory has one name less.
func (r *removal) remove(dir *os.File, name string, depth int, err error) bool {
	fd := int(dir.Fd())
	if errors.Is(err, unix.ENOTEMPTY) {
		if depth == maxDepth {
			return r.moveUp(fd, name)
		}
		var sub *os.File
		if sub, err = openDir(fd, name); err == nil {
			r.empty(sub, depth+1)
			sub.Close()
			err = unlink(fd, name)
		}
	}
	r.fail(err)
	return err == nil
}

// moveUp moves a directory to the top.
func (r *removal) moveUp(dir int, name string) bool {
	if d, err := openDir(dir, name); err == nil { // to be moved, it must be writable itself
		d.Close()
	}
	const tries = 1000 // a command may have used the names
	var err error
	for range tries {
		r.names++
		err = unix.Renameat(dir, name, int(r.top.Fd()), movedPrefix+strconv.Itoa(r.names))
		if err == nil {
			r.moved = true
			return true
		}
		if !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR) {
			break
		}
	}
	r.fail(err)
	return false
}

func (r *removal) fail(err error) {
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("below it: %w", err)
	}
}

// unlink removes a name that is no directory, or an empty directory. ENOTEMPTY means a
// directory with something in it.
func unlink(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		// EPERM: of a directory, on other systems than Linux
		if err2 := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); !errors.Is(err2, unix.ENOTDIR) {
			err = err2
		}
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EEXIST):
		return unix.ENOTEMPTY
	}
	return err
}

// OpenTreeDir opens the directory name in dir, and gives its owner all rights to it. It follows no
// link, not even at name.
func OpenTreeDir(dir *os.File, name string) (*os.File, error) { return openDir(int(dir.Fd()), name) }

func openDir(dir int, name string) (*os.File, error) {
	open := func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	fd, err := open()
	if errors.Is(err, unix.EACCES) && Chmod(dir, name, 0o700) == nil {
		fd, err = open()
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&0o700 != 0o700 {
		_ = unix.Fchmod(fd, 0o700) // what that would have allowed fails, and says so
	}
	return os.NewFile(uintptr(fd), name), nil
}
