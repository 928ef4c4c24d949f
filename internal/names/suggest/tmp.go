// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// slashTmp begins every path in the host's /tmp.
const slashTmp = "/tmp/"

// InPrivateTmp reports whether a path lies in the host's /tmp and is not there for a command
// with a private one, because no entry of its policy shows it. The path is absolute and
// clean.
func InPrivateTmp(policy *sandbox.Resolved, path string) bool {
	if policy.Mode != sandbox.Managed || !strings.HasPrefix(path, slashTmp) {
		return false
	}
	for _, p := range policy.Paths {
		if strings.HasPrefix(p.Path, slashTmp) && strings.HasPrefix(path+"/", p.Path+"/") {
			return false
		}
	}
	return true
}

// TmpPaths returns the paths in /tmp that the words of a command name, in a script too. It
// reads no shell: a name with spaces or quotes in it is not found.
func TmpPaths(words []string) []string {
	var found []string
	for _, w := range words {
		for _, name := range strings.FieldsFunc(w,
			func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&<>()$=,", r) }) {
			if strings.HasPrefix(name, slashTmp) {
				found = append(found, name)
			}
		}
	}
	return found
}
