// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/command/script"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// needed returns the path that must be open for a denied access: the file, or its directory where a
// name in it would be removed, moved or replaced, or where a journal is made beside the file.
func (r *DeniedRun) needed(d *sandbox.Denial) string {
	switch {
	case d.Op != sandbox.Write || d.Path == "" || d.Path == "/":
		return d.Path
	case d.Unlinks:
		return path.Dir(r.removed(d))
	case slices.Contains(systemLocks, d.Path), r.files != nil && r.files.database(d.Path):
		return path.Dir(d.Path)
	}
	return d.Path
}

// systemLocks are what tools of the system lock before they replace files beside it.
var systemLocks = []string{"/etc/.pwd.lock", "/var/lib/dpkg/lock", "/var/lib/dpkg/lock-frontend",
	"/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock", "/var/lib/rpm/.rpm.lock",
	"/var/lib/pacman/db.lck"}

// removed returns the tree that rm(1) was told to remove, where a file in it was the first that it could
// not, and else the path of the denial. A relative word may be meant from where the script has changed to:
// it is the highest part of the path that ends with it. A tree that only a shell can name is not found.
func (r *DeniedRun) removed(d *sandbox.Denial) string {
	if path.Base(d.Program) != "rm" || r.files == nil {
		return d.Path
	}
	top := d.Path
	for _, use := range script.Read(r.Args).Uses {
		words := known(use.Args)
		if len(words) == 0 || path.Base(words[0]) != "rm" {
			continue
		}
		for _, w := range words[1:] {
			name := w
			if !path.IsAbs(w) {
				name = path.Join(r.Dir, w)
			}
			if name = r.files.real(path.Clean(name)); name != "/" && inside(top, name) {
				top = name
			} else if i := strings.Index(top+"/", "/"+path.Clean(w)+"/"); i > 0 && !path.IsAbs(w) {
				top = top[:i+1+len(path.Clean(w))]
			}
		}
	}
	return top
}

// allowed reports whether the policy allows all that a denied access needs, so that it did not deny it.
func (r *DeniedRun) allowed(d *sandbox.Denial) bool {
	needs := d.Access
	if d.Unlinks {
		needs.Path = path.Dir(d.Path)
	}
	return r.Policy.Rule(d.Access) == sandbox.Allow && r.Policy.Rule(needs) == sandbox.Allow
}

// database reports whether a file is an SQLite database, which is changed with a journal beside it.
func (local) database(name string) bool {
	const begin = "SQLite format 3\x00"
	f, err := os.OpenFile(name, os.O_RDONLY|safefile.NoWait, 0) // it may be a pipe by now
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return false
	}
	buf := make([]byte, len(begin))
	_, err = io.ReadFull(f, buf)
	return err == nil && bytes.Equal(buf, []byte(begin))
}

// holds reports whether a setting of the kernel begins with one of some digits.
func (local) holds(name, digits string) bool {
	value, err := os.ReadFile(name)
	return err == nil && len(value) > 0 && strings.IndexByte(digits, value[0]) >= 0
}

// may reports whether owner and mode let this user do something: change a file, or make it in the nearest
// directory that is there.
func (local) may(op sandbox.Op, name string) bool {
	for ; name != "/"; name = path.Dir(name) {
		if _, err := os.Lstat(name); err == nil {
			break
		}
	}
	return mayAccess(op, name)
}

// OpensMore says what a grant of a directory opens beyond what was denied by the paths; empty where it
// opens no more than they need.
func OpensMore(flags string, paths []string) string {
	list, ok := sandbox.ParseGrants(flags)
	if !ok || len(list) != 1 || list[0].Path == "" {
		return ""
	}
	at, together := list[0].Path, 0
	for _, name := range paths {
		rest, below := strings.CutPrefix(name, at+"/")
		if !below {
			continue
		}
		together++
		for part := range strings.SplitSeq(rest, "/") {
			if forOneRun(part) {
				return "opens all below it: the next run may use other names"
			}
		}
	}
	if together >= siblings {
		return "opens all below it"
	}
	return ""
}
