// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package reach

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// New returns the Reach of an area. It costs nothing until it is asked.
func New(a Area) *Reach {
	r := &Reach{fixed: sync.OnceValue(dirs.Usual), mounts: sync.OnceValue(mountTable),
		known: map[string]error{}}
	r.ready = sync.OnceFunc(func() { r.prepare(&a) })
	return r
}

// prepare resolves the links of the places in an area.
func (r *Reach) prepare(a *Area) {
	for _, dir := range r.fixed() {
		r.real = append(r.real, hostfacts.Deepest(dir))
	}
	// A place that is reached by a link is also the one that the link leads to.
	all := a.entries()
	for _, e := range all {
		name, _ := e.Place.Absolute()
		real := hostfacts.Deepest(name)
		if real != name {
			e.Place = sandbox.Place{Path: real}
			all = append(all, e)
		}
		if e.Level == sandbox.LevelWrite && name != "/" {
			r.roots = append(r.roots, real)
		}
	}
	r.policy = sandbox.ReadOnly().WithEntries(all...)
}

// Of returns an [*Error] if a command could change what a path leads to: the file itself, a
// directory or a symbolic link on the way, or the name of one of them. A path at which nothing is
// counts by who could make it. What cannot be inspected is in reach, and so is a relative path.
//
// A file with several names (hard links) is in reach if it is this user's, lies on the file system
// of a writable place, and not all of its names are in its own directory. Files of root in the
// directories of the system are not looked at for that.
func (r *Reach) Of(path string) error {
	if r == nil {
		return &Error{path, "it is not known what commands can change"}
	}
	if !filepath.IsAbs(path) {
		return &Error{path, "its path is relative"}
	}
	path = filepath.Clean(path)
	r.mu.Lock()
	err, ok := r.known[path]
	r.mu.Unlock()
	if !ok {
		err = r.look(path)
		r.mu.Lock()
		r.known[path] = err
		r.mu.Unlock()
	}
	return err
}

func (r *Reach) look(path string) error {
	for _, dir := range r.fixed() {
		// Every run keeps these closed, with what the links in them lead to.
		if rest, ok := strings.CutPrefix(path, dir); ok && (rest == "" || rest[0] == '/') &&
			strings.Count(rest, "/") <= 2 {
			return nil
		}
	}
	r.ready()
	real, links, err := hostfacts.Walk(path, nil)
	for _, l := range links {
		if place := r.place(l.Path); place != "" {
			return &Error{path, fmt.Sprintf("they can replace the symbolic link %s on the way to it", l.Path)}
		}
	}
	if err != nil {
		return &Error{path, "it cannot be inspected: " + hostfacts.Reason(err)}
	}
	if place := r.place(real); place != "" {
		return &Error{path, "they can write to " + place}
	}
	return r.linked(path, real)
}

// place returns the writable place in which a path without links is, by any of its names; "" for
// none.
func (r *Reach) place(real string) string {
	if slices.ContainsFunc(r.real, func(dir string) bool { return hostfacts.Below(real, dir) }) {
		return ""
	}
	names := []string{real}
	if others, known := r.mounts().Aliases(real); known {
		names = append(names, others...)
	}
	for _, name := range names {
		if r.policy.LevelAt(name) != sandbox.LevelWrite {
			continue
		}
		at := ""
		for _, root := range r.roots {
			if hostfacts.Below(name, root) && len(root) > len(at) {
				at = root
			}
		}
		return at
	}
	return ""
}

// system are directories with programs whose several names are not looked for.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/gnu", "/snap", "/etc"}

// linked looks at the other names of a file.
func (r *Reach) linked(path, real string) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(real, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG ||
		st.Nlink < 2 ||
		int(st.Uid) != os.Geteuid() || st.Uid == 0 &&
		slices.ContainsFunc(system, func(dir string) bool { return hostfacts.Below(real, dir) }) {
		return nil //nolint:nilerr // a missing file has no names
	}
	shared := slices.ContainsFunc(r.roots, func(root string) bool {
		var at syscall.Stat_t
		return syscall.Stat(root, &at) == nil && at.Dev == st.Dev
	})
	if !shared || together(filepath.Dir(real), &st) {
		return nil
	}
	return &Error{path, "it has other names (hard links), and one of them may be in a writable place"}
}

// together reports whether all names of a file are in one directory, as those of tools that are
// called by several names. Of a large directory it does not find out.
func together(dir string, st *syscall.Stat_t) bool {
	const most = 512
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(most)
	found := uint64(0)
	for _, n := range names {
		var at syscall.Stat_t
		if syscall.Lstat(filepath.Join(dir, n), &at) == nil && at.Dev == st.Dev && at.Ino == st.Ino {
			found++
		}
	}
	return found == uint64(st.Nlink) //nolint:unconvert,nolintlint // it is smaller on some systems
}

// Path returns the list of directories of a PATH without those that are relative or in reach.
func (r *Reach) Path(list string) string {
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool { return r.Of(dir) != nil })
	return strings.Join(dirs, string(filepath.ListSeparator))
}
