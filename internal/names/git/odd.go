// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Inside reports whether a path below the git directory dir is git's own. Everything
// below a .git is. In another git directory, such as a bare repository, only what lies
// in git's directories or at the top: it may hold linked work trees as well. Both paths
// are clean; dir itself is not inside.
func Inside(dir, path string) bool {
	if dir == path || !within(dir, path) {
		return false
	}
	first, _, deep := strings.Cut(strings.TrimPrefix(path[len(dir):], string(filepath.Separator)),
		string(filepath.Separator))
	return !deep || slices.Contains(strings.Split(dir, string(filepath.Separator)), linkName) || ownDir(first)
}

// ownDir reports whether a directory with this name in a git directory is git's own.
func ownDir(name string) bool {
	switch name {
	case "rebase-merge", "rebase-apply", "sequencer", "rr-cache", "reftable", "NOTES_MERGE_WORKTREE",
		"gitweb", "svn", "annex",
		"fsmonitor--daemon", "subtree-cache":
		return true
	}
	return inner(name) || slices.Contains(closedDirs[:], name)
}

// maxNames is how many names in git directories are looked at, which takes about a
// second. A long path that is kept counts as several, which bounds
// the memory.
const maxNames = 1 << 22

// A NamesError reports that a git directory has too many names to look at each.
type NamesError struct{ Path string }

// Error returns the path, the reason and the fix.
func (e *NamesError) Error() string {
	return message(e.Path, fmt.Sprintf("has more than %d names, so new symbolic links in it would not be found", maxNames), nil, "run git gc")
}

// odd returns what is neither a file nor a directory in the git directories, with what
// it is, as far as it was found. A directory that cannot be read is odd as well, because names in it can be
// used. Directories that closed reports are left out; it may be nil. The error is a
// [*NamesError], or the system's.
func (r *Repository) odd(closed func(path string) bool) (map[string]string, error) {
	w := oddWalk{closed: closed, found: map[string]string{}, left: maxNames}
	dirs := []string{r.Common}
	if r.Dir != r.Common && !Inside(r.Common, r.Dir) {
		dirs = append(dirs, r.Dir)
	}
	for _, dir := range dirs {
		if err := w.walk(dir); err != nil {
			return w.found, err
		}
	}
	return w.found, nil
}

// oddLink begins what is said of a symbolic link; its text follows.
const oddLink = "link to "

// An oddWalk looks at every name in git directories.
type oddWalk struct {
	closed func(string) bool
	found  map[string]string
	left   int // names that may be looked at
}

// walk looks at one git directory.
func (w *oddWalk) walk(dir string) error {
	if isLink(dir) {
		w.found[dir] = oddLink
		return nil
	}
	t, err := openTree(dir)
	if absent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer t.close()
	for next := []string{""}; len(next) > 0; {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		at := filepath.Join(dir, name)
		if w.closed != nil && w.closed(at) {
			continue
		}
		f, err := t.open(name)
		switch {
		case absent(err):
			continue // git cannot reach a name that is too long either
		case errors.Is(err, fs.ErrPermission):
			st, _, _ := t.stat(name)
			w.found[at] = fmt.Sprintf("unreadable, changed at %d", st.changed)
			continue
		case err != nil:
			return err
		}
		err = readDir(f, func(entry fs.DirEntry) bool {
			if w.left--; entry.Type().IsRegular() {
				return w.left > 0 // most names
			}
			child := filepath.Join(name, entry.Name())
			w.pay(child)
			if !entry.IsDir() {
				w.note(t, dir, child, entry.Type())
			} else if Inside(dir, filepath.Join(dir, child, "x")) {
				next = append(next, child)
			}
			return w.left > 0
		})
		f.Close()
		if w.left <= 0 {
			return &NamesError{Path: dir}
		}
		if err != nil && !absent(err) {
			return err
		}
	}
	return nil
}

// pay takes the cost of a text off what is left.
func (w *oddWalk) pay(text string) { w.left -= len(text) / 32 }

// note adds a name below a git directory, which is no regular file.
func (w *oddWalk) note(t tree, dir, name string, mode fs.FileMode) {
	target := ""
	if mode == fs.ModeSymlink {
		target, _ = t.readlink(name) // an empty one was not read
		w.pay(target)
	}
	w.found[filepath.Join(dir, name)] = oddText(mode, target)
}

// oddText says what is neither a file nor a directory; target is the text of a symbolic link.
func oddText(mode fs.FileMode, target string) string {
	if mode == fs.ModeSymlink {
		return oddLink + target
	}
	return mode.String()
}

// oddValue is oddText of a path.
func oddValue(path string, mode fs.FileMode) string {
	target, _ := os.Readlink(path) // of nothing but a link
	return oddText(mode, target)
}
