// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// siblings is the number of denied paths in one directory from which on [SuggestGrants] suggests
// the directory. A list of fewer paths is still easy to read, and more exact.
const siblings = 4

// SuggestGrants returns the fewest grants that would have allowed the denied accesses, paths
// first, each sorted. It treats guesses like facts; filter by [sandbox.Source] before.
//
// A file access needs its own path; Write includes Read. Four or more paths in one
// directory become the directory, and that again with its siblings, but never a directory
// that is less than three levels deep (such as /etc or a home directory) or that is hidden
// or lies in a hidden one (".cache" aside). A grant of a directory does not open protected
// names in it, so those keep their own grants. A connection needs its host and port.
//
// Nothing is suggested for "/", a directory directly below it, a home directory
// (/home/NAME, /Users/NAME), loopback, unix sockets, Bind, Signal, and paths and addresses
// that are not exact.
func SuggestGrants(denials []sandbox.Denial) []sandbox.Grant {
	want := map[string]sandbox.Level{}
	var hosts []sandbox.Grant
	for _, d := range denials {
		switch {
		case d.Op == sandbox.Write && suggestible(d.Path):
			want[d.Path] = sandbox.LevelWrite
		case isFile(d.Op) && suggestible(d.Path):
			want[d.Path] = max(want[d.Path], sandbox.LevelRead)
		case d.Op == sandbox.Connect && d.Net != "unix" && d.Addr != "":
			hosts = append(hosts, sandbox.Grant{Addr: d.Addr})
		}
	}
	for gatherGrants(want, sandbox.LevelWrite) || gatherGrants(want, sandbox.LevelRead) {
	}
	out := pathGrants(want)
	granted := sandbox.ReadOnly().With(hosts...).Hosts() // canonical, sorted, without loopback
	for _, h := range granted {
		if host, _, ok := cutPort(h); !ok || !slices.Contains(granted, host) {
			out = append(out, sandbox.Grant{Addr: h})
		}
	}
	return out
}

// cutPort cuts the port off a canonical address.
func cutPort(addr string) (host, port string, ok bool) {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 || strings.Count(addr, ":") > 1 && addr[0] != '[' {
		return addr, "", false
	}
	return strings.Trim(addr[:i], "[]"), addr[i+1:], true
}

// suggestible returns whether a grant for the path may be suggested.
func suggestible(name string) bool {
	parent := path.Dir(name)
	return path.IsAbs(name) && path.Clean(name) == name && !strings.ContainsRune(name, 0) &&
		parent != "/" && parent != "/home" && parent != "/Users"
}

func isProtected(name string) bool { return slices.Contains(sandbox.ProtectedNames(), path.Base(name)) }

// gatherGrants replaces the paths of one directory by the directory where there are enough of
// them, and returns whether it did. Each replacement makes the table smaller, so repeating
// it ends.
func gatherGrants(want map[string]sandbox.Level, level sandbox.Level) bool {
	count := map[string]int{}
	for name, l := range want {
		if l == level && !isProtected(name) {
			count[path.Dir(name)]++
		}
	}
	changed := false
	for dir, n := range count {
		if n < siblings || strings.Count(dir, "/") < 3 || hidden(dir) || !suggestible(dir) {
			continue
		}
		maps.DeleteFunc(want, func(name string, l sandbox.Level) bool {
			return l <= level && path.Dir(name) == dir && !isProtected(name)
		})
		want[dir] = max(want[dir], level)
		changed = true
	}
	return changed
}

// pathGrants returns grants for the paths, without those that another grant includes.
func pathGrants(want map[string]sandbox.Level) []sandbox.Grant {
	kept := map[string]sandbox.Level{}
	var out []sandbox.Grant
	for _, name := range slices.Sorted(maps.Keys(want)) { // directories before what is in them
		if given(kept, name) < want[name] {
			kept[name] = want[name]
			out = append(out, sandbox.Grant{Level: want[name], Path: name})
		}
	}
	return out
}

// given returns the level that the grants in the table alone give to a path.
func given(kept map[string]sandbox.Level, name string) sandbox.Level {
	for at := name; at != "/"; at = path.Dir(at) {
		if l, ok := kept[at]; ok {
			return l
		}
		if isProtected(at) && kept[path.Dir(at)] == sandbox.LevelWrite {
			return sandbox.LevelRead
		}
	}
	return sandbox.LevelDeny
}
