// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"slices"
	"strings"
)

// GrantPrefix begins the names of the grants for caches, such as "cache:npm".
const GrantPrefix = "cache:"

// Grants returns the names of all grants for caches, sorted.
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

// Granted returns what a grant covers: a whole toolchain, or only the caches of one
// of its tools. It reports false for a name that is not one of [Grants].
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

// Join returns the toolchains of both lists, each cache once.
func Join(found, granted []Toolchain) []Toolchain {
	seen := map[string]bool{}
	var out []Toolchain
	for _, t := range slices.Concat(found, granted) {
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

// GrantFor returns the name of the narrowest grant that covers a path, and the
// directory of that cache, for tools that run with the environment env. The path is
// absolute and clean. Real resolves symbolic links in the directory; nil does not
// follow them. Both results are "" for a path in no cache.
func GrantFor(path string, env []string, real func(string) string) (name, dir string) {
	for _, t := range table() {
		for i := range t.Caches {
			c := &t.Caches[i]
			dir := c.Dir(env)
			if dir == "" || dir == "/" {
				continue
			}
			if real != nil && !inside(path, dir) {
				dir = real(dir)
			}
			if !inside(path, dir) {
				continue
			}
			if c.Tool != "" {
				return GrantPrefix + c.Tool, dir
			}
			return GrantPrefix + t.Name, dir
		}
	}
	return "", ""
}

// GrantAbove is [GrantFor] a missing directory that a tool makes on the way to its cache: the
// grant of the tool with that name, or of ccache for programs that may use it, if a cache of it lies below
// the directory.
func GrantAbove(path string, env []string, tool string) (name, dir string) {
	for _, grant := range []string{GrantPrefix + tool, GrantPrefix + alias[tool]} {
		t, ok := Granted(grant)
		for i := range t.Caches {
			if dir = t.Caches[i].Dir(env); ok && dir != "" && inside(dir, path) {
				return grant, dir
			}
		}
	}
	return "", ""
}

// alias holds programs whose toolchain has another name.
var alias = map[string]string{"mvn": "maven", "mvnw": "maven", "gradlew": "gradle", "npx": "npm",
	"pnpx": "pnpm", "pip3": "pip", "make": "ccache", "gcc": "ccache", "cc": "ccache"}

// Covers reports whether the toolchains have every cache that a grant covers.
func Covers(found []Toolchain, grant string) bool {
	granted, ok := Granted(grant)
	return ok && len(Join(found, []Toolchain{granted})) == len(found)
}
