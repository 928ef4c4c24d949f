// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/tree"
)

// Clean removes what killed runs of this user left in the state directories and in
// workspaces: placeholders, private /tmp directories, and quarantined things that are too
// old or too many. What living processes need stays. There is one report for each of
// [Existing]; nil means that no run has left a state directory. It blocks while another
// process starts or ends a run, and for as long as removing takes.
func Clean() []Report {
	var out []Report
	for _, state := range Existing() {
		r := Report{State: state}
		var err error
		if r.Report, err = guard.Clean(state); err != nil {
			r.fail(state, err)
		}
		r.tmpDirs(filepath.Join(state, "tmp"))
		r.sort()
		out = append(out, r)
	}
	return out
}

func (r *Report) fail(path string, err error) {
	r.Failed = append(r.Failed, guard.Left{Path: path, Why: err.Error()})
}

// sort puts every list in the order of its paths.
func (r *Report) sort() {
	slices.Sort(r.Placeholders)
	slices.Sort(r.TmpDirs)
	slices.SortFunc(r.Held, func(a, b guard.Held) int { return strings.Compare(a.Path, b.Path) })
	for _, l := range [][]guard.Left{r.Replaced, r.Unknown, r.Failed} {
		slices.SortFunc(l, func(a, b guard.Left) int { return strings.Compare(a.Path, b.Path) })
	}
}

// tmpDirs removes the private /tmp directories whose owner is dead.
func (r *Report) tmpDirs(all string) {
	parent, err := os.Open(all)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		defer parent.Close()
		err = flock(parent, unix.LOCK_EX)
	}
	if err != nil {
		r.fail(all, err)
		return
	}
	r.sweep(parent)
}

// sweep removes what no living process holds in the open and locked directory parent.
func (r *Report) sweep(parent *os.File) {
	names, err := parent.Readdirnames(-1)
	if err != nil {
		r.fail(parent.Name(), err)
		return
	}
	for _, n := range names {
		dir := filepath.Join(parent.Name(), n)
		f, err := openDir(parent, n)
		switch {
		case errors.Is(err, fs.ErrNotExist): // its owner was faster
			continue
		case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
			r.Unknown = append(r.Unknown, guard.Left{Path: dir, Why: "not a directory"})
			continue
		case err != nil:
			r.fail(dir, err)
			continue
		}
		err = flock(f, unix.LOCK_EX|unix.LOCK_NB)
		held := errors.Is(err, unix.EWOULDBLOCK)
		if err == nil {
			err = tree.Remove(dir)
		}
		switch {
		case held:
			r.Held = append(r.Held, guard.Held{Path: dir, Holders: 1})
		case err != nil:
			r.fail(dir, err)
		default:
			r.TmpDirs = append(r.TmpDirs, dir)
		}
		f.Close()
	}
}

// openDir opens a directory in parent. Its own command may have taken away the right to
// read it, which is given back: else no later start could tell whether it is held.
func openDir(parent *os.File, name string) (*os.File, error) {
	open := func() (int, error) {
		return unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	fd, err := open()
	if errors.Is(err, unix.EACCES) && unix.Fchmodat(int(parent.Fd()), name, 0o700, 0) == nil {
		fd, err = open()
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(parent.Name(), name)), nil
}
