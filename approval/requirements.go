// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// Requirements returns the words of Request.Requires for what would be opened: everything, where
// the command is to run outside of the sandbox, or grants. Nothing is nil.
func Requirements(outside bool, grants []sandbox.Grant) []string {
	if outside {
		return []string{Outside}
	}
	var out []string
	for _, g := range grants {
		switch {
		case g.Opening != "":
			out = append(out, "allow:"+g.Opening)
		case g.Name != "":
			out = append(out, "grant:"+g.Name)
		case g.Addr != "":
			out = append(out, "host:"+g.Addr)
		default:
			out = append(out, g.Level.String()+":"+g.Path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Opened is the reverse of Requirements. Words that it does not know open nothing.
func Opened(required []string) (outside bool, grants []sandbox.Grant) {
	for _, word := range required {
		what, value, _ := strings.Cut(word, ":")
		if value == "" {
			outside = outside || word == Outside
			continue
		}
		switch what {
		case "allow":
			grants = append(grants, sandbox.Grant{Opening: value})
		case "grant":
			grants = append(grants, sandbox.Grant{Name: value})
		case "host":
			grants = append(grants, sandbox.Grant{Addr: value})
		case "write":
			grants = append(grants, sandbox.Grant{Path: value, Level: sandbox.LevelWrite})
		case "read":
			grants = append(grants, sandbox.Grant{Path: value, Level: sandbox.LevelRead})
		}
	}
	return outside, grants
}
