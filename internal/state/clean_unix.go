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

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/tree"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/guard"
)

// Folders are the folders in which runs of this user may have left something,
// without symbolic links in their names. Folders of others are not among them.
func Folders() []string {
	var out []string
	for _, d := range Dirs() {
		real := hostfacts.RealPath(d)
		var st syscall.Stat_t
		if syscall.Lstat(real, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFDIR && int(st.Uid) == os.Getuid() && st.Mode&0o022 == 0 {
			out = append(out, real)
		}
	}
	return out
}

// Clean ends what killed runs of this user left in the state folders and in
// workspaces: placeholders, private /tmp folders, and boxes of the quarantine that
// are too old or too many. What living processes need stays. There is one report for
// each of [Folders]; nil means that no run has left a state folder. It blocks
// while another process starts or ends a run, and for as long as removing takes.
// Where names are not guarded with placeholders, as on macOS, there are only folders.
func Clean() []Report {
	var out []Report
	for _, state := range Folders() {
		r := Report{State: state}
		r.guarded(state)
		r.folders(filepath.Join(state, "tmp"))
		r.sort()
		out = append(out, r)
	}
	return out
}

// sort puts every list in the order of its paths.
func (r *Report) sort() {
	slices.Sort(r.Placeholders)
	slices.Sort(r.Folders)
	slices.SortFunc(r.Held, func(a, b Held) int { return strings.Compare(a.Path, b.Path) })
	for _, l := range [][]Left{r.Kept, r.Odd, r.Failed} {
		slices.SortFunc(l, func(a, b Left) int { return strings.Compare(a.Path, b.Path) })
	}
}

// guarded cleans the journal of placeholders and the quarantine.
func (r *Report) guarded(state string) {
	g, err := guard.Clean(state)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		r.Failed = append(r.Failed, Left{state, err.Error()})
	}
	r.Placeholders, r.Discarded = g.Removed, g.Discarded
	r.Quarantine, r.QuarantineBytes = g.Quarantine, g.QuarantineBytes
	for _, h := range g.Held {
		r.Held = append(r.Held, Held(h))
	}
	for _, lists := range []struct {
		from []guard.Left
		to   *[]Left
	}{{g.Kept, &r.Kept}, {g.Odd, &r.Odd}, {g.Failed, &r.Failed}} {
		for _, l := range lists.from {
			*lists.to = append(*lists.to, Left{l.Path, l.Err.Error()})
		}
	}
}

// folders removes the private folders whose owner is gone.
func (r *Report) folders(all string) {
	parent, err := os.Open(all)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		defer parent.Close()
		err = flock(parent, unix.LOCK_EX)
	}
	if err != nil {
		r.Failed = append(r.Failed, Left{all, err.Error()})
		return
	}
	r.sweep(parent)
}

// sweep removes what nobody in the open and locked folder parent holds any more.
func (r *Report) sweep(parent *os.File) {
	names, err := parent.Readdirnames(-1)
	if err != nil {
		r.Failed = append(r.Failed, Left{parent.Name(), err.Error()})
		return
	}
	for _, n := range names {
		dir := filepath.Join(parent.Name(), n)
		f, err := openFolder(parent, n)
		switch {
		case errors.Is(err, fs.ErrNotExist): // its owner was faster
			continue
		case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
			r.Odd = append(r.Odd, Left{dir, "it is not a folder"})
			continue
		case err != nil:
			r.Failed = append(r.Failed, Left{dir, err.Error()})
			continue
		}
		switch err := flock(f, unix.LOCK_EX|unix.LOCK_NB); {
		case errors.Is(err, unix.EWOULDBLOCK):
			r.Held = append(r.Held, Held{dir, 1})
		case err != nil:
			r.Failed = append(r.Failed, Left{dir, err.Error()})
		default:
			if err := tree.Remove(dir); err != nil {
				r.Failed = append(r.Failed, Left{dir, err.Error()})
			} else {
				r.Folders = append(r.Folders, dir)
			}
		}
		f.Close()
	}
}

// openFolder opens a folder in parent. Its own command may have taken away the right
// to read it, which comes back then: else nobody could ever tell whether it is held.
func openFolder(parent *os.File, name string) (*os.File, error) {
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
