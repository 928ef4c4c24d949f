// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/names/guard"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Clean removes what killed runs of this user left in the state directories: files of the journal,
// private /tmp directories, and quarantined things that are too old or too many. What living
// processes need stays. There is one report for each of [Existing], and one with an error for what
// stands in the place of the first; nil means that no run has left a state directory. It blocks while
// another process starts or ends a run, and for as long as removing takes.
func Clean() []Report {
	var out []Report
	// Only the first candidate: in /tmp another user may have taken the name of the other.
	first := Candidates()[0]
	err := safefile.CheckOwn(first)
	if err == nil {
		_, err = checkWay(first)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r := Report{State: first}
		r.fail(first, err)
		out = append(out, r)
	}
	for _, state := range Existing() {
		r := Report{State: state}
		var err error
		if r.Report, err = guard.Clean(state); err != nil {
			r.fail(state, err)
		}
		r.tmpDirs(state)
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
	slices.Sort(r.TmpDirs)
	slices.SortFunc(r.Held, func(a, b guard.Held) int { return strings.Compare(a.Path, b.Path) })
	for _, l := range [][]guard.Left{r.Planted, r.Unknown, r.Failed} {
		slices.SortFunc(l, func(a, b guard.Left) int { return strings.Compare(a.Path, b.Path) })
	}
}

// tmpDirs removes the private /tmp directories whose owner is dead.
func (r *Report) tmpDirs(state string) {
	path := filepath.Join(state, tmpDir)
	root, err := safefile.OpenOwn(state)
	if err != nil {
		r.fail(state, err)
		return
	}
	defer func() { _ = root.Close() }()
	own, err := root.Open(tmpDir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		r.fail(path, err)
		return
	}
	all := own.Into()
	defer all.Close()
	r.sweep(all, path, nil)
}

// sweepTime is how long a start removes what others left; the next one goes on.
const sweepTime = time.Second

// sweepSoon is sweep for a start.
func (r *Report) sweepSoon(all *os.File, path string) {
	late := make(chan struct{})
	defer time.AfterFunc(sweepTime, func() { close(late) }).Stop()
	r.sweep(all, path, late)
}

// sweep removes what no living process holds in the directory of private /tmp directories.
// The lock of that is held while it looks who holds one, not while it removes. Only names that
// makeTmp gives are touched. What cannot be removed gets another name, and only a sweep without a
// time, where late is nil, looks at it again: it does not delay every later start.
func (r *Report) sweep(all *os.File, path string, late <-chan struct{}) {
	names, err := all.Readdirnames(-1)
	if err != nil {
		r.fail(path, err)
	}
	for _, n := range names {
		at := filepath.Join(path, n)
		switch {
		case !ours(n):
			r.Unknown = append(r.Unknown, guard.Left{Path: at, Why: "not a name that sallyport gives"})
		case late == nil || !strings.HasPrefix(n, stuckPrefix):
			if !r.sweepOne(all, n, at, late) {
				return
			}
		}
	}
}

// sweepOne removes one private /tmp, unless a living process holds it. It reports whether the next
// one can be looked at.
func (r *Report) sweepOne(all *os.File, name, path string, late <-chan struct{}) bool {
	if err := safefile.WaitLock(all); err != nil {
		r.fail(path, err)
		return false
	}
	f := r.take(all, name, path)
	if err := safefile.Lock(all, unix.LOCK_UN); err != nil {
		r.fail(path, err)
		return false
	}
	if f == nil {
		return true
	}
	defer f.Close()
	switch err := safefile.RemoveTreeIn(all, name, late); {
	case err == nil:
		r.TmpDirs = append(r.TmpDirs, path)
	case !errors.Is(err, safefile.ErrLate):
		fd := int(all.Fd()) // where it cannot be renamed it is tried again
		_ = unix.Renameat(fd, name, fd, stuckPrefix+strings.TrimPrefix(name, runPrefix))
		r.fail(path, err)
	}
	return true
}

// take locks one private /tmp, for its removal; nil if that is not to be. The lock of the directory
// of all is held.
func (r *Report) take(dir *os.File, name, path string) *os.File {
	// Its own command may have taken away the right to read it, which is given back.
	f, err := safefile.OpenTreeDir(dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // its owner was faster
		return nil
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		r.Unknown = append(r.Unknown, guard.Left{Path: path, Why: "not a directory"})
		return nil
	case err != nil:
		r.fail(path, err)
		return nil
	}
	switch err := safefile.Lock(f, unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		r.Held = append(r.Held, guard.Held{Path: path, Holders: 1})
	case err != nil:
		r.fail(path, err)
	default:
		return f
	}
	f.Close()
	return nil
}
