// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"path/filepath"
	"strings"
)

// A NoticeDir is a directory of notices in the state directory, by which runs of one user know of
// each other. Who publishes a notice looks at the other list afterwards: of two runs that concern each
// other, at least one sees the other.
type NoticeDir string

// The lists of notices.
const (
	// Writers has commands that run in a sandbox, with the places where they write.
	Writers NoticeDir = "writers"
	// Fixed has files that an approval of a command rests on, which nothing changes while it runs.
	Fixed NoticeDir = "fixed"
)

// A Notice is what other runs know of a command until it has ended.
type Notice struct {
	Run     string // may be empty
	PID     int    // of the sallyport that started it
	Program string // the first word of the command
	// Paths have no links on the way to them: what is in them is writable for a Writer, and fixed are
	// these alone. Closed are places in Paths, of a Writer, that it cannot change.
	Paths, Closed []string
	// Unknown says that the notice cannot be read: it may be about every path.
	Unknown bool
}

// Covers reports whether a notice of a Writer is about a path, which has no links on the way to it.
func (n *Notice) Covers(path string) bool {
	if n.Unknown {
		return true
	}
	open := deepest(n.Paths, path)
	return open > 0 && open > deepest(n.Closed, path)
}

// deepest returns the length of the longest of the places in which a path is; 0 for none.
func deepest(places []string, path string) (length int) {
	for _, p := range places {
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(p, string(filepath.Separator)))
		if ok && (rest == "" || rest[0] == filepath.Separator) {
			length = max(length, len(p))
		}
	}
	return length
}
