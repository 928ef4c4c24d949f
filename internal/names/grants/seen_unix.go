// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grants

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
}

// LookForTools looks at every name of the table in a directory, without following links. The error
// says which name could not be looked at.
func LookForTools(root string) ([]SeenTool, error) {
	listed, whole := topNames(root)
	all := inTable(listed)
	out := make([]SeenTool, 0, len(all))
	for _, n := range all {
		s := SeenTool{ToolName: n, Path: filepath.Join(root, n.Name)}
		if whole && !isListed(listed, n.Name) {
			out = append(out, s) // most are missing, and a look at each of them takes longer
			continue
		}
		var st syscall.Stat_t
		switch err := syscall.Lstat(s.Path, &st); {
		case err == nil:
			found := st
			s.Stat = &found
		case !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR):
			return nil, &fs.PathError{Op: "lstat", Path: s.Path, Err: err}
		}
		out = append(out, s)
	}
	return out, nil
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

// fewNames is how many names of a directory are compared with the table in place of a look at each.
const fewNames = 128

// topNames returns the names at the top of a directory, maxTop at most; none of one that cannot be listed.
// Whole says that these are all of them, and few enough to be searched, in ASCII: some file systems take
// other letters for those of a name.
func topNames(root string) (listed []string, whole bool) {
	f, err := os.OpenFile(root, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	listed, err = f.Readdirnames(maxTop) // what was read before an error counts
	other := func(name string) bool {
		return strings.ContainsFunc(name,
			func(r rune) bool { return r >= 0x80 })
	}
	return listed, (err == nil || errors.Is(err, io.EOF)) && len(listed) <= fewNames &&
		!slices.ContainsFunc(listed, other)
}

// isListed reports whether a name, or the directory that it is in, is listed, in whatever case: the file
// system may not tell them apart.
func isListed(listed []string, name string) bool {
	top, _, _ := strings.Cut(name, "/")
	return slices.ContainsFunc(listed, func(one string) bool { return strings.EqualFold(one, top) })
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
	type top struct {
		listed []string
		whole  bool
	}
	tops := map[string]top{}
	for _, root := range roots {
		listed, whole := topNames(root)
		tops[root] = top{listed, whole}
		for _, name := range matched(listed) {
			at := filepath.Join(root, name)
			if n, ok := FindTool(name); ok &&
				!slices.ContainsFunc(seen, func(s SeenTool) bool { return s.Path == at }) {
				out = append(out, SeenTool{ToolName: n, Path: at})
			}
		}
	}
	again := slices.DeleteFunc(slices.Clone(seen), func(s SeenTool) bool {
		now, known := tops[strings.TrimSuffix(strings.TrimSuffix(s.Path, s.Name), "/")]
		return known && now.whole && !isListed(now.listed, s.Name)
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
