// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
)

// A Board is a directory of notices in the state directory, by which runs of one user know of
// each other. Who posts a notice looks at the other board afterwards: of two runs that concern each
// other, at least one sees the other.
type Board string

// The boards.
const (
	// Writers has commands that run in a sandbox, with the places where they write.
	Writers Board = "writers"
	// Fixed has files that an approval of a command rests on, which nothing changes while it runs.
	Fixed Board = "fixed"
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

// end is the last field of a notice that was written to its end.
const end = "end"

var errNotice = errors.New("it is not a whole notice")

// text returns the fields, each with a NUL behind it, which no path has.
func (n *Notice) text() []byte {
	var b []byte
	add := func(words ...string) {
		for _, w := range words {
			b = append(b, w...)
		}
		b = append(b, 0)
	}
	add("run ", n.Run)
	add("pid ", strconv.Itoa(n.PID))
	add("program ", n.Program)
	for _, p := range n.Paths {
		add("path ", p)
	}
	for _, p := range n.Closed {
		add("closed ", p)
	}
	add(end)
	return b
}

// parse is the reverse of text.
func parse(text string) (n Notice, err error) {
	fields := strings.Split(text, "\x00")
	last := len(fields) - 1
	if last < 1 || fields[last] != "" || fields[last-1] != end {
		return n, errNotice
	}
	for _, f := range fields[:last-1] {
		switch what, value, _ := strings.Cut(f, " "); what {
		case "run":
			n.Run = value
		case "pid":
			if n.PID, err = strconv.Atoi(value); err != nil {
				return n, errNotice
			}
		case "program":
			n.Program = value
		case "path":
			n.Paths = append(n.Paths, value)
		case "closed":
			n.Closed = append(n.Closed, value)
		default:
			return n, errNotice
		}
	}
	return n, nil
}
