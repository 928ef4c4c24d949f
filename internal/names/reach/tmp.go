// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// slashTmp begins every path in the host's /tmp.
const slashTmp = "/tmp/"

// InPrivateTmp reports whether a path lies in the host's /tmp and is not there for a command
// with a private one, because neither an entry of its policy nor its working directory dir shows
// it. The paths are absolute and clean.
func InPrivateTmp(policy *sandbox.Resolved, dir, path string) bool {
	if policy.Mode != sandbox.Managed || !strings.HasPrefix(path, slashTmp) {
		return false
	}
	shows := func(at string) bool { return strings.HasPrefix(at, slashTmp) && safefile.Within(path, at) }
	return !shows(dir) && !slices.ContainsFunc(policy.Paths,
		func(p sandbox.PathRule) bool { return shows(p.Path) })
}

// TmpPaths returns the paths in /tmp that the words of a command name, in a script too. It
// reads no shell: a name with spaces or quotes in it is not found.
func TmpPaths(words []string) []string {
	var found []string
	for _, w := range words {
		for _, name := range pathsIn(w) {
			if strings.HasPrefix(name, slashTmp) {
				found = append(found, name)
			}
		}
	}
	return found
}

// pathsIn returns what may be paths in a word of a command, which may be a script.
func pathsIn(word string) []string {
	return strings.FieldsFunc(word,
		func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&<>()$=,", r) })
}
