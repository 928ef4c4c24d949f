// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// Stat returns a function that says what commands find at a path, behind links, as [os.Stat] does: what is
// staged, and else what the host has.
func Stat(staged []plan.Staged) func(name string) (fs.FileInfo, error) {
	return func(name string) (fs.FileInfo, error) {
		const mostLinks = 40 // as the kernel's
		for range mostLinks {
			info, next, err := follow(staged, name)
			if err != nil || next == "" {
				return info, err
			}
			name = next
		}
		return nil, &fs.PathError{Op: "stat", Path: name, Err: unix.ELOOP}
	}
}

// follow looks at a path until there is a link on the way, and returns the path behind that.
func follow(staged []plan.Staged, name string) (info fs.FileInfo, next string, err error) {
	at := "/"
	parts := strings.Split(name, "/")
	for i, part := range parts {
		at = filepath.Join(at, part) // no link is on the way, so ".." is the directory above
		real, err := place(staged, at)
		if err == nil {
			info, err = os.Lstat(real)
		}
		if err != nil {
			return nil, "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		to, err := os.Readlink(real)
		if err != nil {
			return nil, "", err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(at) + "/" + to
		}
		return nil, strings.Join(append([]string{to}, parts[i+1:]...), "/"), nil
	}
	return info, "", nil
}

// place returns where what commands find at a path lies on the host. No directory on the way is a link.
func place(staged []plan.Staged, name string) (string, error) {
	for _, s := range slices.Backward(staged) { // the nearest
		switch {
		case name == s.Path && s.Kind != plan.KindDirectory:
			return s.Upper.Path, nil
		case s.Kind != plan.KindDirectory || name == s.Path || !safefile.Within(name, s.Path):
			continue
		}
		at, where := search(s.Upper.Path, name[len(s.Path)+1:])
		switch where {
		case inStage:
			return at, nil
		case nowhere:
			return "", &fs.PathError{Op: "stat", Path: name, Err: unix.ENOENT}
		}
		break
	}
	return name, nil
}

// Where something is that a stage shows.
const (
	onHost  = iota // if it is anywhere
	inStage        // at the path that was returned
	nowhere
)

// search looks for a path in an overlay, relative to its top.
func search(upper, rel string) (at string, where int) {
	at, where = upper, onHost
	for name := range strings.SplitSeq(rel, "/") {
		fd, err := unix.Open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", nowhere // a directory that is closed, or something else than one
		}
		if at != upper && changes.IsOpaque(fd) {
			where = nowhere
		}
		var st unix.Stat_t
		err = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		unix.Close(fd)
		at = filepath.Join(at, name)
		switch {
		case errors.Is(err, unix.ENOENT):
			return "", where // below, everything is the host's
		case err != nil || changes.IsWhiteout(&st):
			return "", nowhere
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR { // and where a name follows, nothing is there
			where = nowhere
		}
	}
	return at, inStage
}

// stagedKind returns what is at a path of an overlay, relative to its top, over a host that has kind there.
func stagedKind(upper, rel string, kind plan.Kind) plan.Kind {
	at, where := search(upper, rel)
	switch where {
	case onHost:
		return kind
	case nowhere:
		return plan.KindMissing
	}
	spot, err := hostfacts.Look(at)
	if err != nil {
		return plan.KindMissing
	}
	return spot.Kind
}
