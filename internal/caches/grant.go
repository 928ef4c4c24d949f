// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"slices"
	"strings"
)

// GrantPrefix begins the names of the grants for caches, such as "cache:npm".
const GrantPrefix = "cache:"

// Grants returns the names of all grants for caches, sorted. The slice is the
// caller's own.
func Grants() []string {
	var names []string
	for _, t := range table() {
		names = append(names, GrantPrefix+t.Name)
		for i := range t.Caches {
			if tool := t.Caches[i].Tool; tool != "" {
				names = append(names, GrantPrefix+tool)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Granted returns what a grant is about: a whole toolchain, or of one only what a
// single tool keeps. It reports false for a name that is not among [Grants].
func Granted(name string) (Toolchain, bool) {
	tool, ok := strings.CutPrefix(name, GrantPrefix)
	if !ok {
		return Toolchain{}, false
	}
	for _, t := range table() {
		if t.Name == tool {
			return t, true
		}
		t.Caches = slices.DeleteFunc(t.Caches, func(c Cache) bool { return c.Tool == "" || c.Tool != tool })
		if len(t.Caches) > 0 {
			return t, true
		}
	}
	return Toolchain{}, false
}

// Join returns the toolchains of both lists, without a cache twice.
func Join(found, asked []Toolchain) []Toolchain {
	seen := map[string]bool{}
	var out []Toolchain
	for _, t := range slices.Concat(found, asked) {
		t.Caches = slices.DeleteFunc(slices.Clone(t.Caches), func(c Cache) bool { return seen[c.Name] })
		for i := range t.Caches {
			seen[t.Caches[i].Name] = true
		}
		if len(t.Caches) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// GrantFor returns the name of the narrowest grant that covers a path, which is
// absolute and clean, for tools that run with the environment env, and the folder of
// the cache. Real returns the path behind symbolic links; nil means that none are
// followed. Both are "" for a path that is in no cache.
func GrantFor(path string, env []string, real func(string) string) (name, folder string) {
	for _, t := range table() {
		for i := range t.Caches {
			c := &t.Caches[i]
			folder := c.Folder(env)
			if folder == "" || folder == "/" {
				continue
			}
			if real != nil && !inside(path, folder) {
				folder = real(folder)
			}
			if !inside(path, folder) {
				continue
			}
			if c.Tool != "" {
				return GrantPrefix + c.Tool, folder
			}
			return GrantPrefix + t.Name, folder
		}
	}
	return "", ""
}

// Holds reports whether the toolchains have every cache that a grant is about.
func Holds(found []Toolchain, grant string) bool {
	asked, ok := Granted(grant)
	return ok && len(Join(found, []Toolchain{asked})) == len(found)
}

// inside reports whether a path is a folder or lies in it.
func inside(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}
