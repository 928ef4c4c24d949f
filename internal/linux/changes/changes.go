// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changes reads what commands changed in a stage: the upper directories of overlays, against the
// host's directories that they lie over. It mounts nothing, and writes nothing but its record of what the
// host's tree was when the stage first met a path, the [Base].
package changes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Layer is a root of a stage. The names in it are relative to Root; "." is Root itself.
type Layer struct {
	Root  string // the host's directory, absolute and clean
	Upper string // what commands wrote, absolute and clean: the upper directory of an overlay with userxattr
	// Name makes it a single file: Root has the file of that name, Upper its copy, and nothing else in them
	// counts. Empty for a directory.
	Name string
}

// Facts are what lstat says. The zero Facts are those of a file that does not exist.
type Facts struct {
	Mode     uint32 // with the type, as in unix.Stat_t; 0 for no file
	UID, GID uint32
	Dev, Ino uint64 // name the inode: entries with the same ones in New are hard links of each other
	Rdev     uint64 // of a device
	Nlink    uint64
	Size     int64 // bytes
	Blocks   int64 // of 512 bytes
	Mtime    int64 // nanoseconds since 1970, as Ctime
	Ctime    int64
}

// The types of files in [Facts.Mode], as in unix.Stat_t.
const (
	typeMask = 0o170000
	typeDir  = 0o040000
	typeFile = 0o100000
	typeLink = 0o120000
	typeChar = 0o020000
	permMask = 0o7777
)

// Exists reports whether there is a file.
func (f *Facts) Exists() bool { return f.Mode != 0 }

// IsDir reports whether it is a directory.
func (f *Facts) IsDir() bool { return f.Mode&typeMask == typeDir }

func (f *Facts) sameType(g *Facts) bool { return f.Mode&typeMask == g.Mode&typeMask }

// sameRights reports whether permissions, owner and group are equal.
func (f *Facts) sameRights(g *Facts) bool {
	return f.Mode == g.Mode && f.UID == g.UID && f.GID == g.GID
}

// isWhiteout reports whether it is what an overlay puts in the place of what was deleted.
func (f *Facts) isWhiteout() bool { return f.Mode&typeMask == typeChar && f.Rdev == 0 }

// An Entry is one change, and what is needed to apply it.
type Entry struct {
	executor.Change
	Layer int // index of its layer
	// Way says that this is no change: a directory of the upper with changes below it. Such entries come
	// before those, so that new directories can be made as they are in the stage, and times set.
	Way bool
	New Facts // of the upper; zero if it was deleted
	Old Facts // of the host's at the moment of [Read]; zero if it has none
	// Target is where a symbolic link leads now.
	Target string
	// Base is what the host's was when the stage first met it, and has Known false without a record.
	Base Seen
	// Newer is a path relative to the root, in the host's directory that was deleted or replaced by something
	// else, that was changed after that, or cannot be read; empty if there is none.
	Newer string
}

// Seen is what a path of the host was when a stage first met it.
type Seen struct {
	Known bool // there is a record; without, nothing below says anything
	// Late says that the host's had been changed already when it was recorded, after the stage had met it.
	Late bool
	// Below says that the path has no record of its own: it lies in a directory that the stage has deleted or
	// replaced at At. The facts are zero; what was changed since At is newer than that.
	Below bool
	// Hides says that the stage has deleted or replaced the directory, at At.
	Hides bool
	At    int64 // nanoseconds since 1970
	Facts       // zero for no file; without Dev, Rdev and Blocks
}

// Conflict returns why the change cannot be applied without loss: "content", "mode", "kind" or "deleted", if
// the host's file was changed since the stage first met it; else "". It is "" without a record.
func (e *Entry) Conflict() string {
	switch {
	case e.Way:
		return ""
	case e.Newer != "":
		return "content"
	}
	why := e.Base.Conflict(&e.Old)
	if why == "kind" && !e.Base.Exists() && e.New.sameType(&e.Old) { // both have made one
		if e.Kind == executor.ChangeMode {
			return "mode"
		}
		return "content"
	}
	return why
}

// Conflict returns how a file of the host differs from what was seen: "content", "mode", "kind" (also for one
// that did not exist) or "deleted"; else "". Of a directory only mode and owner count.
func (s *Seen) Conflict(now *Facts) string {
	switch {
	case !s.Known:
		return ""
	case s.Below:
		if now.Exists() && !now.IsDir() && now.Ctime >= s.At {
			return "content"
		}
		return ""
	case !now.Exists():
		if s.Exists() {
			return "deleted"
		}
		return ""
	case !now.sameType(&s.Facts):
		return "kind"
	case now.IsDir():
		if !now.sameRights(&s.Facts) {
			return "mode"
		}
		return ""
	case now.Ino != s.Ino || now.Size != s.Size || now.Mtime != s.Mtime:
		return "content"
	case !now.sameRights(&s.Facts):
		return "mode"
	// Mtime can be set back; a new link sets Ctime, and by AnyCtime it does not count
	case s.Late || s.Ctime != 0 && now.Ctime != s.Ctime && now.Nlink == s.Nlink:
		return "content"
	}
	return ""
}

// path is the absolute path of an entry.
func (e *Entry) path() string {
	if e.Path == "." {
		return e.Root
	}
	return strings.TrimSuffix(e.Root, "/") + "/" + e.Path
}

// Select returns the entries at and below absolute paths, with the directories on the way to them; all for no
// paths. A path with no change is an error that matches executor.ErrNoChange.
func Select(entries []Entry, paths []string) ([]Entry, error) {
	if len(paths) == 0 {
		return entries, nil
	}
	found, chosen := make([]bool, len(paths)), make([]bool, len(entries))
	for i := range entries {
		at := entries[i].path()
		for n, path := range paths {
			below := safefile.Within(at, path)
			chosen[i] = chosen[i] || below || entries[i].Way && safefile.Within(path, at)
			found[n] = found[n] || below && !entries[i].Way
		}
	}
	if n := slices.Index(found, false); n >= 0 {
		return nil, noChange(entries, paths[n])
	}
	var out []Entry
	for i := range entries {
		if chosen[i] {
			out = append(out, entries[i])
		}
	}
	return out, nil
}

func noChange(entries []Entry, path string) error {
	e := &executor.StageError{Why: "the stage has no change at " + text.Word(path),
		Fix: "see sallyport changes", Err: executor.ErrNoChange}
	for i := range entries {
		if at := entries[i].path(); entries[i].Entries > 0 && safefile.Within(path, at) {
			e.Why = fmt.Sprintf("%s is in the directory %s, which was deleted as a whole", text.Word(path),
				text.Word(at))
			e.Fix = "name that directory"
		}
	}
	return e
}
