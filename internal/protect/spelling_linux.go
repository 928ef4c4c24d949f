// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// spellings refuses rules for single files that another spelling of their name
// would get around. Where the kernel folds names, every spelling is one entry to
// it, and a mount over the entry covers all of them. Where a server does, as
// behind FUSE, SMB or 9P, each spelling of a file is an entry of its own, and the
// mount covers only one. A folder has one entry there, too: the kernel never has
// two for the same.
func spellings(root sandbox.Level, rules []plan.Rule) error {
	for _, r := range rules {
		if r.Kind == plan.KindFolder || r.Kind == plan.KindMissing || r.Level >= levelAbove(root, rules, r.Path) {
			continue
		}
		dir, base := filepath.Split(r.Path)
		if !served(dir) {
			continue
		}
		other := strings.Map(swapCase, base)
		if s, err := hostfacts.Look(dir + other); other != base && err == nil && s.ID == r.ID {
			return &sandbox.UnsupportedError{
				Need: fmt.Sprintf("a file system that knows %s by one name only", r.Path),
				Have: fmt.Sprintf("%s is the same file there, and what keeps the one would not keep the other", other),
				Hint: "put a rule on a folder around it, or move it to a local file system",
			}
		}
	}
	return nil
}

// levelAbove is the level that a path would have without its own rule.
func levelAbove(root sandbox.Level, rules []plan.Rule, name string) sandbox.Level {
	level := root
	for _, r := range rules { // sorted, so the last one is the nearest
		if r.Path != name && hostfacts.Below(name, r.Path) {
			level = r.Level
		}
	}
	return level
}

// served reports whether a server outside of the kernel says which names are the
// same in a folder (statfs(2) has the numbers). What cannot be asked counts as
// one.
func served(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return true
	}
	switch uint32(st.Type) {
	case unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC,
		unix.NFS_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC:
		return true
	}
	return false
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}
