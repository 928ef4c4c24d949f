// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grants

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

const (
	// MaxListed is how many files of a new directory are listed.
	MaxListed = 5
	// maxRead is how many names of a new directory and below are read to list them.
	maxRead = 256
)

// maxTop is how many names at the top of a workspace are read to find those of patterns. In a larger
// one, patterns are not looked for.
const maxTop = 4096

// A SeenTool is what was at one name at one moment.
type SeenTool struct {
	ToolName
	Path string
	Stat *syscall.Stat_t // nil: nothing was there
	Deep bool            // nor at the directory that it would be in; false where that is not certain
}

// LookForTools looks at every name of the table in a directory, without following links. The error
// says which name could not be looked at.
func LookForTools(root string) ([]SeenTool, error) {
	list := listings{}
	all := inTable(list.of(root).Names)
	out := make([]SeenTool, 0, len(all))
	for _, n := range all {
		s := SeenTool{ToolName: n, Path: filepath.Join(root, n.Name)}
		if list.lacks(root, n.Name) {
			out = append(out, s) // most are missing, and a look at each of them takes longer
			continue
		}
		var err error
		if s.Stat, err = look(s.Path); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// LookInHome looks at every name in a home directory that lies in root. What cannot be looked at is left
// out: it is in a directory of another user.
func LookInHome(home, root string) []SeenTool {
	list, table := listings{}, homeFiles()
	out := make([]SeenTool, 0, len(table.rows))
	for _, n := range table.rows {
		s := SeenTool{ToolName: n, Path: filepath.Join(home, n.Name)}
		if s.Path == root || !safefile.Within(s.Path, root) {
			continue
		}
		var err error
		first, _, deep := strings.Cut(n.Name, "/")
		if s.Deep = deep && list.of(home).Lacks(first); !list.lacks(home, n.Name) {
			s.Stat, err = look(s.Path)
		}
		if err == nil {
			out = append(out, s)
		}
	}
	return out
}

// look returns what is at a path; nil is that nothing is.
func look(path string) (*syscall.Stat_t, error) {
	var st syscall.Stat_t
	switch err := syscall.Lstat(path, &st); {
	case err == nil:
		return &st, nil
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return nil, nil //nolint:nilnil // documented
	default:
		return nil, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
}

// inTable returns the names of the table in a directory. What patterns match is there; the others may be
// missing.
func inTable(listed []string) []ToolName {
	out := make([]ToolName, 0, len(names))
	found := matched(listed)
	for i := range names {
		n := names[i]
		if n.Name[0] != '*' {
			out = append(out, n)
			continue
		}
		for _, name := range found {
			if n.matches(name) {
				same := n
				same.Name = name
				out = append(out, same)
			}
		}
	}
	return out
}

// topNames returns the names at the top of a directory, maxTop at most.
func topNames(root string) safefile.Listing {
	f, err := os.OpenFile(root, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return safefile.Listing{}
	}
	defer f.Close()
	return safefile.List(f, maxTop)
}

// listings are those of directories that were read.
type listings map[string]safefile.Listing

func (ls listings) of(dir string) safefile.Listing {
	l, ok := ls[dir]
	if !ok {
		l = topNames(dir)
		ls[dir] = l
	}
	return l
}

// lacks reports whether it is certain that a name below a directory is missing: its first element is, or
// the last in a directory that has many names of the table.
func (ls listings) lacks(top, name string) bool {
	first, _, deep := strings.Cut(name, "/")
	if ls.of(top).Lacks(first) || !deep {
		return ls.of(top).Lacks(first)
	}
	dir := filepath.Dir(name)
	return homeFiles().full[dir] && ls.of(filepath.Join(top, dir)).Lacks(filepath.Base(name))
}

// matched returns those of the names in a directory that patterns match, sorted.
func matched(listed []string) []string {
	found := slices.DeleteFunc(slices.Clone(listed), func(name string) bool {
		return !slices.ContainsFunc(names, func(n ToolName) bool {
			return n.Name[0] == '*' &&
				n.matches(name)
		})
	})
	slices.Sort(found)
	return found
}

// LookAgain returns those of the seen names at which something may be now, with what patterns of the
// table match now in the directories roots and was not among them. New tells the rest.
func LookAgain(seen []SeenTool, roots []string) []SeenTool {
	var out []SeenTool
	list := listings{}
	for _, root := range roots {
		for _, name := range matched(list.of(root).Names) {
			at := filepath.Join(root, name)
			if n, ok := FindTool(name); ok &&
				!slices.ContainsFunc(seen, func(s SeenTool) bool { return s.Path == at }) {
				out = append(out, SeenTool{ToolName: n, Path: at})
			}
		}
	}
	again := slices.DeleteFunc(slices.Clone(seen), func(s SeenTool) bool {
		top := strings.TrimSuffix(strings.TrimSuffix(s.Path, s.Name), "/")
		return (s.Home || slices.Contains(roots, top)) && list.lacks(top, s.Name)
	})
	return append(again, out...)
}

// New returns what is at the name now and was not there: the name itself or, of a directory
// with files, the first of them, and how many more files were seen in it. Another file or
// directory in the place of the old one is new, and so is a tracked file that has changed. Nil
// means that nothing is.
func (s *SeenTool) New() (files []string, more int) {
	var now syscall.Stat_t
	if syscall.Lstat(s.Path, &now) != nil || s.Stat != nil && s.Stat.Dev == now.Dev &&
		s.Stat.Ino == now.Ino && !s.changed(&now) {
		return nil, 0
	}
	if now.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		files = list(strings.TrimSuffix(s.Path, s.Name), s.Name)
	}
	if len(files) == 0 {
		return []string{s.Path}, 0
	}
	kept := files[:min(len(files), MaxListed)]
	return kept, len(files) - len(kept)
}

// changed reports whether a tracked file has changed.
func (s *SeenTool) changed(now *syscall.Stat_t) bool {
	return s.Tracked && (s.Stat.Size != now.Size || modified(s.Stat) != modified(now))
}

// list returns the files in a directory below root and in the directories in it, as far as
// maxRead names go; those higher up first. Other programs may exchange directories for links
// meanwhile, so nothing outside of root is opened, and nothing is waited for.
func list(root, dir string) []string {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil // it is gone
	}
	defer r.Close()
	var files []string
	left := maxRead
	for dirs := []string{dir}; len(dirs) > 0 && left > 0; dirs = dirs[1:] {
		f, err := r.OpenFile(dirs[0], os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		entries, _ := f.ReadDir(left) // what was read before an error counts
		f.Close()
		left -= len(entries)
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			if at := filepath.Join(dirs[0], e.Name()); e.IsDir() {
				dirs = append(dirs, at)
			} else {
				files = append(files, filepath.Join(root, at))
			}
		}
	}
	return files
}

// matches reports whether the line is about a name below its root.
func (n *ToolName) matches(name string) bool {
	suffix, isPattern := strings.CutPrefix(n.Name, "*")
	return n.Name == name || isPattern && len(name) > len(suffix) && strings.HasSuffix(name, suffix) &&
		!strings.Contains(name, "/")
}
