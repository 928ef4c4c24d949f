// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// checkSpellings refuses rules for single files that another spelling of their name would
// get around. Where the kernel folds names, every spelling is one entry to it, and a mount
// over the entry covers all of them. Where a server does, as behind FUSE, SMB or 9P, each
// spelling of a file is an entry of its own, and the mount covers only one. A directory has
// one entry there, too: the kernel never has two for the same.
func (g *inspection) checkSpellings() error {
	for _, r := range g.sorted() {
		if r.Kind == plan.KindDirectory {
			continue
		}
		level := g.base // without the rule
		if above, ok := g.nearest(filepath.Dir(r.Path)); ok {
			level = above.Level
		}
		dir, base := filepath.Split(r.Path)
		if r.Level >= level || !served(dir) {
			continue
		}
		other := strings.ToUpper(base)
		if other == base {
			other = strings.ToLower(base)
		}
		if s, err := hostfacts.Look(dir + other); other != base && err == nil && s.ID == r.ID {
			return &sandbox.UnsupportedError{
				Need: fmt.Sprintf("a file system that knows %s by one name only", r.Path),
				Have: fmt.Sprintf("%s is the same file there, and a rule for the one does not hold for the other", other),
				Hint: "put a rule on a directory around it, or move it to a local file system",
			}
		}
	}
	return nil
}

// served reports whether a server outside of the kernel says which names are the same in a
// directory (statfs(2) has the numbers). One that cannot be asked counts as served.
func served(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return true
	}
	switch uint32(st.Type) {
	case unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
		unix.SMB2_SUPER_MAGIC,
		unix.NFS_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC:
		return true
	}
	return false
}
