// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A trail is a path that was followed to its end.
type trail struct {
	real    string      // where it ends, without symbolic links
	links   []string    // the symbolic links on the way, each with its directory resolved
	mode    fs.FileMode // type of what exists at real; zero if missing
	missing bool        // nothing exists at real
	closed  bool        // real is a directory on the way that cannot be entered
}

// maxLinks is how many symbolic links Linux follows in one path (MAXSYMLINKS).
const maxLinks = 40

// errTooManyLinks is what follow returns instead of ELOOP.
var errTooManyLinks = errors.New("too many symbolic links, perhaps in a circle")

// follow walks the path name, relative to the resolved directory start, as the kernel
// does: ".." leads up from where a symbolic link led to. A path that cannot be
// walked because a directory is unreadable ends at that directory.
func follow(start, name string) (trail, error) {
	if filepath.IsAbs(name) && filepath.Clean(name) == name {
		if at, ok := direct(name); ok {
			return at, nil // most paths
		}
	}
	at := trail{real: start, mode: fs.ModeDir}
	rest := at.restart(name)
	for {
		var element string
		element, rest = cutElement(rest)
		switch {
		case element == "":
			return at, nil
		case element == ".":
			continue
		case element == "..":
			at.up()
			continue
		case at.missing:
			at.real = join(at.real, element)
			continue
		}
		next := join(at.real, element)
		mode, err := lstat(next)
		switch {
		case errors.Is(err, fs.ErrPermission):
			at.closed = true
			return at, nil
		case err != nil && !absent(err):
			return at, cause(err)
		case err != nil:
			at.real, at.missing, at.mode = next, true, 0
		case mode == fs.ModeSymlink:
			if len(at.links) == maxLinks {
				return at, errTooManyLinks
			}
			target, err := os.Readlink(next)
			if err != nil {
				return at, cause(err)
			}
			at.links = append(at.links, next)
			rest = at.restart(target + string(filepath.Separator) + rest)
		default:
			at.real, at.mode = next, mode
		}
	}
}

// followAbs is follow for a path relative to the working directory of this process.
func followAbs(name string) (trail, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return trail{}, err
	}
	return follow("", name)
}

// restart goes to the root if the path is absolute, and returns the path from
// there.
func (t *trail) restart(path string) string {
	if filepath.IsAbs(path) {
		volume := filepath.VolumeName(path)
		t.real, t.mode, t.missing = volume+string(filepath.Separator), fs.ModeDir, false
		return path[len(volume):]
	}
	return path
}

// up goes to the directory that real is in.
func (t *trail) up() {
	t.real, t.mode = filepath.Dir(t.real), fs.ModeDir
	if t.missing {
		t.missing = !exists(t.real)
	}
}

// cutElement takes the first element from a path; both are empty at its end.
func cutElement(path string) (element, rest string) {
	for path != "" && os.IsPathSeparator(path[0]) {
		path = path[1:]
	}
	end := 0
	for end < len(path) && !os.IsPathSeparator(path[end]) {
		end++
	}
	return path[:end], path[end:]
}

// join appends one element to a clean directory. It does not clean the element, as
// filepath.Join does.
func join(dir, element string) string {
	if dir != "" && os.IsPathSeparator(dir[len(dir)-1]) {
		return dir + element
	}
	return dir + string(filepath.Separator) + element
}

// within reports whether path is dir or lies below it; both are clean.
func within(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}

// A list collects paths without naming one twice. The zero value is empty.
type list struct {
	paths []Path
	seen  map[string]bool
}

// add appends paths, except those that are in the list.
func (l *list) add(paths ...Path) {
	if l.seen == nil {
		l.seen = make(map[string]bool)
	}
	for _, p := range paths {
		if !l.seen[p.Path] {
			l.seen[p.Path] = true
			l.paths = append(l.paths, p)
		}
	}
}

// follow appends the end of a path and the symbolic links on the way to it. It returns the end.
func (l *list) follow(start, name, why string) trail {
	at, err := follow(start, name)
	l.symlinks(at.links, why)
	if err == nil { // or it is a circle: the links are all there is to protect
		l.add(Path{Path: at.real, Missing: at.missing, IsDir: at.mode.IsDir(), Why: why})
	}
	return at
}

// symlinks appends links on the way to something.
func (l *list) symlinks(links []string, why string) {
	for _, link := range links {
		l.add(Path{Path: link, Symlink: true, Why: "symbolic link on the way to " + why})
	}
}
