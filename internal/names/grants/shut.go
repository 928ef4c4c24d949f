// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// programDirs are in the paths of what programs outside load or start by its name.
var programDirs = []string{"/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/", "/libx32/", "/libexec/"}

// A shutTable has names in a home directory: stores of secrets, and what programs run or obey later.
type shutTable struct {
	stores map[string]bool // with what is below them
	names  []string        // all, sorted
}

var shutHome = sync.OnceValue(func() *shutTable {
	t := &shutTable{stores: map[string]bool{}}
	for i := range kinds {
		for _, name := range slices.Concat(kinds[i].paths, kinds[i].keys) {
			t.stores[name] = true
		}
		for _, f := range kinds[i].files {
			t.stores[f.path] = true
		}
	}
	all := maps.Clone(t.stores)
	for name := range homeFiles().later {
		all[name] = true
	}
	t.names = slices.Sorted(maps.Keys(all))
	return t
})

// Shut reports whether no question while a command runs opens a path to be written to: a store of secrets of
// the table, also a missing one, or what programs outside run or obey later. Any directory above it may be a
// home directory. With tree, what is below the path counts as well, because it is moved with it. The path is
// absolute and clean.
func Shut(name string, tree bool) bool {
	whole := name + "/"
	if LaterAt(name) != NotLater || InPath(name) ||
		slices.ContainsFunc(programDirs, func(dir string) bool { return strings.Contains(whole, dir) }) {
		return true
	}
	above := func(at string) bool { return strings.HasPrefix(at, whole) }
	if tree && (slices.ContainsFunc(systemStarts, above) || name == "/usr") {
		return true
	}
	table := shutHome()
	for home := path.Dir(name); ; home = path.Dir(home) {
		rest := strings.TrimPrefix(strings.TrimPrefix(name, home), "/")
		if tree && strings.HasPrefix(rest, ".") && holdsName(table.names, rest) {
			return true
		}
		for ; rest != "."; rest = path.Dir(rest) {
			if table.stores[rest] {
				return true
			}
		}
		if home == "/" {
			return false
		}
	}
}

// holdsName reports whether one of the sorted names is below a directory.
func holdsName(sorted []string, dir string) bool {
	i, _ := slices.BinarySearch(sorted, dir+"/")
	return i < len(sorted) && strings.HasPrefix(sorted[i], dir+"/")
}

// ShutLinks returns what the names that [Shut] means lead to by symbolic links in these home directories,
// which real resolves.
func ShutLinks(homes []string, real func(string) string) (at []string) {
	for _, home := range homes {
		home = real(home)
		for _, name := range shutHome().names {
			full := filepath.Join(home, name)
			if to := real(full); to != full && !safefile.Within(home, to) {
				at = append(at, to)
			}
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// InPath reports whether a path is a directory of this process's PATH, lies in one, or has one in it.
func InPath(name string) bool {
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		if dir = path.Clean(dir); path.IsAbs(dir) && dir != "/" &&
			(safefile.Within(name, dir) || safefile.Within(dir, name) && name != "/") {
			return true
		}
	}
	return false
}
