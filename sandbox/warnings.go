// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// systemDirs are directories of the system or of all users: who can write in all of one can
// change what others run.
var systemDirs = []string{
	"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/nix/store",
	"/opt", "/root", "/run",
	"/sbin", "/srv", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/var", "/var/lib",
	"/Applications", "/Library", "/System", "/Users", "/private", "/private/etc", "/private/var",
}

// Warnings returns a sentence for every part of a bound policy that is likely a mistake:
// writable directories that are too wide, such as the home directory, and entries that were
// ignored (see [Resolved]). Home is the home directory of the user, or empty. Real resolves
// symbolic links; nil leaves paths as they are.
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

// tooWide returns why a writable root is too wide, or "". At is the root without symbolic
// links, and home may be empty.
func tooWide(root, at, home string) string {
	name := text.Word(root)
	if at != root {
		name += " (that is " + text.Word(at) + ")"
	}
	switch {
	case root == "/":
		return "" // rejected elsewhere, or meant
	case home != "" && at == home:
		return name + " is the home directory, so settings and data of all programs can be changed in it, but for files that others run later; use a directory below it"
	case home != "" && strings.HasPrefix(home, strings.TrimSuffix(at, "/")+"/"):
		return name + " contains the home directory, so settings and data of all programs can be changed in it, but for files that others run later; use a directory below it"
	case slices.Contains(systemDirs, at):
		return name + " is a system directory, so what others run can be changed in it; use a directory below it"
	}
	return ""
}
