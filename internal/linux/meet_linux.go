// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// errFixed says that approved commands run what a command would be able to change.
var errFixed = errors.New("files of approved commands are writable")

// meet tells the other runs of this user where a command writes, and looks what approved commands run,
// in this order: see [dirs.NoticeDir]. The error is errFixed where the command must be planned again.
func (a *attempt) meet(r *plan.Request) error {
	if a.dry || a.level == plan.LevelNone {
		return nil
	}
	n := dirs.Notice{Run: a.spec.Run, PID: os.Getpid(), Program: a.spec.Args[0], Paths: writable(r)}
	if len(n.Paths) == 0 {
		return nil
	}
	for _, u := range r.Rules {
		if u.Level != sandbox.LevelWrite && u.Kind != plan.KindMissing && a.level != plan.LevelLandlock {
			n.Closed = append(n.Closed, u.Path)
		}
	}
	own, err := a.host.onDisk()
	if err != nil {
		return err
	}
	if a.notice, err = dirs.PublishNotice(own.state, dirs.Writers, &n); err != nil {
		return err
	}
	all, err := dirs.Notices(own.state, dirs.Fixed)
	if err != nil {
		return err
	}
	var fixed []string
	for _, f := range all {
		if f.Unknown {
			return &sandbox.UnsupportedError{
				Need: "to leave alone what approved commands run", Have: f.Program + " cannot be read",
				Hint: "wait until no approved command runs; if it stays, remove it",
			}
		}
		if f.Run != a.spec.Run || f.Run == "" {
			fixed = append(fixed, f.Paths...)
		}
	}
	fixed = slices.DeleteFunc(fixed, func(path string) bool { return !n.Covers(path) || stays(&n, path) })
	if len(fixed) == 0 {
		return nil
	}
	if i := slices.IndexFunc(fixed,
		func(path string) bool { return slices.Contains(a.fixed, path) }); i >= 0 {
		return a.refusal(&sandbox.UnsupportedError{
			Need: fmt.Sprintf("%s to stay as it is, because an approved command that runs depends on it", fixed[i]),
			Have: "it cannot be made read-only alone",
			Hint: "wait until that command has ended",
		})
	}
	a.fixed = append(slices.Clone(a.fixed), fixed...)
	return errFixed
}

// stays reports whether a file that is not there could be made in a place that stays writable as a whole:
// whose approved command looks for it there sees the notice before it starts.
func stays(n *dirs.Notice, path string) bool {
	there := path
	for missing(there) && there != "/" {
		there = filepath.Dir(there)
	}
	return there != path && slices.Contains(n.Paths, there)
}

// linked reports whether one of some files has further names, by which it could be changed.
func linked(files []string) bool {
	return slices.ContainsFunc(files, func(name string) bool {
		var st unix.Stat_t
		return unix.Lstat(name, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1
	})
}

// missing reports whether nothing is at a path: who looked at what was there finds out.
func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
