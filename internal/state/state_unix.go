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

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/tree"
)

// Candidates are where sallyport may keep what outlives a run, best first: the state
// directory of the XDG base directory rules and, for users whose home cannot hold it, a
// directory of their own in the temporary directory. A directory that was asked for by
// name has no substitute.
func Candidates() []string {
	if d := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return []string{filepath.Join(d, "sallyport")}
	}
	var dirs []string
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		dirs = append(dirs, filepath.Join(home, ".local", "state", "sallyport"))
	}
	return append(dirs, filepath.Join(os.TempDir(), fmt.Sprintf("sallyport-%d", os.Getuid())))
}

// Dir returns the state directory, without symbolic links in its name. It is created if it
// is missing, for this user alone. The error is about the first candidate.
func Dir() (string, error) {
	return first(func(string) error { return nil })
}

// first creates the candidates, and returns the first for which f has no error.
func first(f func(dir string) error) (string, error) {
	var why error
	for _, d := range Candidates() {
		err := ownDir(d)
		if err == nil {
			d = hostfacts.RealPath(d)
			if err = f(d); err == nil {
				return d, nil
			}
		}
		if why == nil {
			why = err
		}
	}
	return "", why
}

// Existing returns the state directories in which runs of this user may have left
// something, without symbolic links in their names. Those of other users are not among
// them.
func Existing() []string {
	var out []string
	for _, d := range Candidates() {
		real := hostfacts.RealPath(d)
		var st syscall.Stat_t
		if syscall.Lstat(real, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR && int(st.Uid) == os.Getuid() && st.Mode&0o022 == 0 {
			out = append(out, real)
		}
	}
	return out
}

// ownDir creates a directory that only this user can enter, or checks that the one that
// exists is of that kind: in a shared directory another user could have created it first.
func ownDir(d string) error {
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
		return fmt.Errorf("%s is not a directory of this user", d)
	}
	if st.Mode&0o077 != 0 {
		return os.Chmod(d, 0o700)
	}
	return nil
}

// A Tmp is the directory that commands see as /tmp. It is locked as long as its owner
// lives, so that a later start can tell a crash from a run.
type Tmp struct {
	Path string
	lock *os.File
}

// NewTmp creates a private /tmp in the first state directory that takes one, and returns
// both. The error is about the first candidate.
func NewTmp() (state string, tmp *Tmp, err error) {
	state, err = first(func(dir string) (err error) {
		tmp, err = makeTmp(dir)
		return err
	})
	if err != nil {
		return "", nil, TmpError(err)
	}
	return state, tmp, nil
}

// TmpError says that there is no private /tmp.
func TmpError(err error) error {
	return fmt.Errorf("cannot create the private /tmp: %w; set XDG_STATE_HOME to a directory with room, or choose another directory for /tmp", err)
}

// makeTmp creates a private /tmp below state, and removes those whose owner is dead.
func makeTmp(state string) (*Tmp, error) {
	all := filepath.Join(state, "tmp")
	if err := ownDir(all); err != nil {
		return nil, err
	}
	// The lock of the parent keeps a sweep from removing a directory that was created
	// but not yet locked.
	parent, err := os.Open(all)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := flock(parent, unix.LOCK_EX); err != nil {
		return nil, err
	}
	new(Report).sweep(parent) // what cannot be removed is left for the next time
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

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			return err
		}
	}
}

// Remove removes the directory. It waits for no process: the commands that used it have
// ended.
func (t *Tmp) Remove() error {
	err := tree.Remove(t.Path)
	return errors.Join(err, t.lock.Close())
}
