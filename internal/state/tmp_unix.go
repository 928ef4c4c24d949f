// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/tree"

	"golang.org/x/sys/unix"
)

// A Tmp is the folder that commands see as /tmp. It is locked for as
// long as its owner lives, so that a later start can tell a crash from a run.
type Tmp struct {
	Path string
	lock *os.File
}

// Dirs are where sallyport may keep what outlives a run, best first: the
// state folder of the XDG base directory rules and, for users whose home cannot
// hold it, a folder of their own in the temporary directory. A folder that was
// asked for by name has no substitute.
func Dirs() []string {
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return []string{filepath.Join(d, "sallyport")}
	}
	var dirs []string
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		dirs = append(dirs, filepath.Join(home, ".local", "state", "sallyport"))
	}
	return append(dirs, filepath.Join(os.TempDir(), fmt.Sprintf("sallyport-%d", os.Getuid())))
}

// NewTmp makes a private folder in the first state folder that takes one. It
// returns both, or why the first one did not.
func NewTmp() (state string, tmp *Tmp, err error) {
	for _, d := range Dirs() {
		e := ownFolder(d)
		if e == nil {
			state = hostfacts.RealPath(d)
			if tmp, e = makeTmp(state); e == nil {
				return state, tmp, nil
			}
		}
		if err == nil {
			err = e
		}
	}
	return "", nil, TmpError(err)
}

// ownFolder makes a folder that only this user can enter, or checks that the
// one that is there is of that kind: in a shared directory somebody else could
// have made it first.
func ownFolder(d string) error {
	// The way there is the user's own, like the rest of the home.
	if err := os.MkdirAll(filepath.Dir(d), 0o700); err != nil { //nolint:forbidigo // see above
		return err
	}
	if err := syscall.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var st syscall.Stat_t
	if err := syscall.Lstat(d, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: d, Err: err}
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR || int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a folder of this user", d)
	}
	if st.Mode&0o077 != 0 {
		return os.Chmod(d, 0o700)
	}
	return nil
}

// makeTmp makes a private folder below state, and removes those whose owner is
// gone.
func makeTmp(state string) (*Tmp, error) {
	all := filepath.Join(state, "tmp")
	if err := ownFolder(all); err != nil {
		return nil, err
	}
	// The lock of the parent keeps a sweep from taking a folder that was made
	// but not yet locked.
	parent, err := os.Open(all)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := flock(parent, unix.LOCK_EX); err != nil {
		return nil, err
	}
	// What cannot be removed is left for the next time; it is in nobody's way.
	new(Report).sweep(parent)
	dir, err := os.MkdirTemp(all, "run-")
	if err != nil {
		return nil, err
	}
	lock, err := os.Open(dir)
	if err == nil {
		err = flock(lock, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		os.Remove(dir)
		return nil, err
	}
	return &Tmp{Path: dir, lock: lock}, nil
}

func TmpError(err error) error {
	return fmt.Errorf("the private /tmp cannot be made: %w; set XDG_STATE_HOME to a folder with room, or choose another one with --tmp", err)
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			return err
		}
	}
}

// Remove ends the folder. It waits for nobody: the commands that used it have
// ended.
func (t *Tmp) Remove() error {
	err := tree.Remove(t.Path)
	return errors.Join(err, t.lock.Close())
}
