// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostfacts finds out what is known about this machine: what its kernel
// offers, what exists at a path, what a standard descriptor is, and where a program is.
// It looks and reports; it starts nothing and changes nothing.
//
// [OwnBuild] and [ReadBuild] say from what this program was built.
package hostfacts

import (
	"path/filepath"
	"strings"
)

// RealPath resolves symbolic links, or returns the name when it cannot.
func RealPath(name string) string {
	if r, err := EvalSymlinks(name); err == nil {
		return r
	}
	return name
}

// EvalSymlinks is [filepath.EvalSymlinks]. Most paths have no symbolic link in them,
// and the kernel says so faster than a look at every directory on the way.
func EvalSymlinks(name string) (string, error) {
	if exists, _ := Direct(name); exists && filepath.IsAbs(name) {
		return filepath.Clean(name), nil
	}
	return filepath.EvalSymlinks(name)
}

// Value returns the last value of a variable.
func Value(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// Deepest resolves the symbolic links of the part of a path that exists.
func Deepest(name string) string {
	if _, direct := Direct(name); direct && filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	rest := ""
	for at := name; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return name
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
