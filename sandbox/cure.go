// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"slices"
	"strings"
)

// siblings is how many denied paths in one folder make [Cure] propose the
// folder instead. With fewer, the list of paths is still easy to read and says
// more exactly what is opened.
const siblings = 4

// Cure returns the fewest grants that would have let the denied accesses
// through, paths first, each sorted. Guesses are treated like facts; whoever
// must not act on a guess filters by [Source] first.
//
// A file access is cured by its own path; Write includes Read. Four or more
// paths in one folder are cured by the folder, and that again with its
// siblings, but never by a folder that is less than three levels deep (such as
// /etc or a home directory), by one that is hidden or lies in a hidden one
// (".cache" aside), and never in place of a protected name, which a folder's
// grant does not open. A connection is cured by its host and port.
//
// No grant is proposed for "/", for a folder directly below it, for a home
// directory (/home/NAME, /Users/NAME), for loopback, for unix sockets, for Bind
// and Signal, and for paths and addresses that are not known exactly: nothing
// that narrow would cure them.
func Cure(ds []Denial) []Grant {
	want := map[string]Level{}
	var hosts []string
	for _, d := range ds {
		switch {
		case d.Op.isFile() && curable(d.Path):
			l := LevelRead
			if d.Op == Write {
				l = LevelWrite
			}
			want[d.Path] = max(want[d.Path], l)
		case d.Op == Connect && d.Net != "unix":
			if host, port, ok := splitAddr(d.Addr); ok && !isLocal(host) && !strings.Contains(host, "*") {
				hosts = append(hosts, joinAddr(host, port))
			}
		}
	}
	for gather(want, LevelWrite) || gather(want, LevelRead) {
	}
	return append(pathGrants(want), hostGrants(hosts)...)
}

// curable reports whether a grant for the path may be proposed.
func curable(name string) bool {
	if !isClean(name) || depth(name) < 2 {
		return false
	}
	switch path.Dir(name) {
	case "/home", "/Users":
		return false
	}
	return true
}

// gather replaces the paths of one folder by the folder where there are enough
// of them, and reports whether it did. Each replacement makes the table
// smaller, so that repeating it ends.
func gather(want map[string]Level, level Level) bool {
	count := map[string]int{}
	for name, l := range want {
		if l == level && !isProtectedName(path.Base(name)) {
			count[path.Dir(name)]++
		}
	}
	changed := false
	for dir, n := range count {
		if n < siblings || !gatherable(dir) {
			continue
		}
		for name, l := range want {
			if l <= level && path.Dir(name) == dir && !isProtectedName(path.Base(name)) {
				delete(want, name)
			}
		}
		want[dir] = max(want[dir], level)
		changed = true
	}
	return changed
}

// gatherable reports whether a folder may stand for what is in it.
func gatherable(dir string) bool {
	if depth(dir) < 3 || !curable(dir) {
		return false
	}
	for name := range strings.SplitSeq(dir, "/") {
		if strings.HasPrefix(name, ".") && name != ".cache" {
			return false
		}
	}
	return true
}

// pathGrants turns the table into grants and leaves out what another one gives.
func pathGrants(want map[string]Level) []Grant {
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names) // folders before what is in them
	kept := map[string]Level{}
	var out []Grant
	for _, name := range names {
		if given(kept, name) >= want[name] {
			continue
		}
		kept[name] = want[name]
		out = append(out, Grant{Level: want[name], Path: name})
	}
	return out
}

// given returns the level that the grants in the table, and nothing else, give
// to a path.
func given(kept map[string]Level, name string) Level {
	for at := name; at != "/"; at = path.Dir(at) {
		if l, ok := kept[at]; ok {
			return l
		}
		if isProtectedName(path.Base(at)) && kept[path.Dir(at)] == LevelWrite {
			return LevelRead
		}
	}
	return LevelDeny
}

// hostGrants leaves out repetitions, and ports of hosts that are granted whole.
func hostGrants(hosts []string) []Grant {
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	var out []Grant
	for _, h := range hosts {
		host, port, _ := splitAddr(h)
		if port != "" && slices.Contains(hosts, host) {
			continue
		}
		out = append(out, Grant{Addr: h})
	}
	return out
}
