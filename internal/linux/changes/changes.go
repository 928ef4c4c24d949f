// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package changes reads what commands changed in a stage: the upper directories of overlays, against the
// host's directories that they lie over. It mounts nothing, and writes nothing but its record of what the
// host's tree was when the stage first met a path, the [Base].
package changes

import (
	"time"

	"github.com/sallyport-dev/sallyport/executor"
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
	Nlink    uint64
	Size     int64 // bytes
	Blocks   int64 // of 512 bytes
	Mtime    int64 // nanoseconds since 1970, as Ctime
	Ctime    int64
}

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
	// else, that was changed after that; empty if there is none.
	Newer string
}

// Seen is what a path of the host was when a stage first met it.
type Seen struct {
	Known bool // there is a record; without, nothing below says anything
	// Late says that the host's had been changed already when it was recorded, after the stage had met it.
	Late  bool
	At    int64 // when the stage met it, in nanoseconds since 1970
	Facts       // zero for no file
}

// Conflict returns why the change cannot be applied without loss: "content", "mode", "kind" or "deleted", if
// the host's file was changed since the stage first met it; else "".
func (e *Entry) Conflict() string {
	panic("not yet") // TODO
}

// Time returns nanoseconds since 1970 as a time.
func Time(ns int64) time.Time { return time.Unix(0, ns) }
