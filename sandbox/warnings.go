// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
)

// systemFolders are folders that belong to everybody, or to the system: whoever
// can write in all of one can change what others run.
var systemFolders = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/nix/store", "/opt", "/root", "/run",
	"/sbin", "/srv", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/var", "/var/lib",
	"/Applications", "/Library", "/System", "/Users", "/private", "/private/etc", "/private/var",
}

// Warnings returns a sentence for every part of a bound policy that is likely not
// what its author wants: writable folders that are too wide, such as the home
// folder, and entries that were ignored (see [Resolved]). It changes nothing and
// nothing is refused for it. Home is the home folder of the user, or empty. Real
// returns the path behind symbolic links, or the path as it is when there is
// none; nil means that no path is looked at.
func (p Policy) Warnings(home string, real func(string) string) []string {
	if p.mode != Managed || p.open {
		return nil
	}
	c := p.compiled()
	if real == nil {
		real = func(name string) string { return name }
	}
	if home = path.Clean(home); path.IsAbs(home) {
		home = real(home)
	} else {
		home = ""
	}
	out := slices.Clone(c.warnings)
	for _, w := range c.writable() {
		if s := tooWide(w.Root, real(w.Root), home); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// tooWide says what is wrong with a writable root, or nothing. Home is empty when
// nobody knows it.
func tooWide(root, at, home string) string {
	name := root
	if at != root {
		name += " (that is " + at + ")"
	}
	switch {
	case root == "/":
		return "" // refused, or meant
	case home != "" && at == home:
		return name + " is the whole home folder, so shell start-up files, ssh keys and everything else in it can be changed; use a folder below it"
	case home != "" && strings.HasPrefix(home, strings.TrimSuffix(at, "/")+"/"):
		return name + " holds the home folder, so shell start-up files, ssh keys and everything else in it can be changed; use a folder below it"
	case slices.Contains(systemFolders, at):
		return name + " is a folder of the system, so what others run can be changed in it; use a folder below it"
	}
	return ""
}
