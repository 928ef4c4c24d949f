// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The flags of run that open more than one path or address.
const (
	wholeNetwork = "--net host"
	allSockets   = "--allow unix"
	noSandbox    = "-s full-access"
)

// wider returns the flags that allow an access together with much more, for one that no narrow
// grant allows. It is empty for what the policy denies by a rule of its own.
func (r *DeniedRun) wider(d *sandbox.Denial) string {
	switch d.Op {
	case sandbox.Connect, sandbox.Bind:
		switch {
		case d.Net == "unix" || strings.HasPrefix(d.Addr, "/") || strings.HasPrefix(d.Addr, "@"):
			return allSockets
		case r.Policy.Network() != sandbox.NetworkHost:
			return wholeNetwork
		}
	case sandbox.Signal:
		return noSandbox
	case sandbox.Read, sandbox.Write, sandbox.Exec:
		return r.widerPath(d)
	}
	return ""
}

// widerPath is wider for files: the nearest existing path, whatever else it opens.
func (r *DeniedRun) widerPath(d *sandbox.Denial) string {
	if d.Path == "" || d.Source == sandbox.Guessed {
		return ""
	}
	g := asGrant(d)
	if n, at, ok := r.later(d.Path); ok && d.Op == sandbox.Write && n.Grant == grants.GrantHome {
		// what exists alone, or what is missing with the rest of the table
		if g.Path = r.existing(d.Path); !inside(g.Path, at) {
			g = sandbox.Grant{Name: n.Grant}
		}
		return g.String()
	}
	if r.allowed(d) {
		return r.heldFile(d, g)
	}
	g.Path = r.existing(r.needed(d))
	if r.Policy.With(g).Rule(d.Access) != sandbox.Allow {
		return "" // denied by an entry, which no grant opens
	}
	if g.Path == "/" || ofKernel(d.Path) {
		return noSandbox
	}
	if locked, ok := strings.CutSuffix(d.Path, ".lock"); ok && locked != d.Path {
		file := sandbox.Grant{Path: locked, Level: g.Level}
		if r.files != nil && r.files.exists(locked) && grants.HeldByItself(locked) {
			return g.String() + " " + file.String() // it becomes the file, which is protected by itself
		}
	}
	if n, at, ok := grants.BelowHome(r.homes(), d.Path); ok && d.Op == sandbox.Write && !inside(g.Path, at) &&
		!slices.Contains(r.Policy.Named(), n.Grant) {
		return g.String() + " " + sandbox.Grant{Name: n.Grant}.String() // the name stays closed in it
	}
	return g.String()
}

// heldFile is widerPath for a file that the sandbox protects in a directory that may be written, such as the
// settings of git in a home: it cannot be replaced, unless it is granted by itself.
func (r *DeniedRun) heldFile(d *sandbox.Denial, g sandbox.Grant) string {
	if d.Op != sandbox.Write || d.Errno != "EBUSY" && d.Errno != "EROFS" || r.files == nil ||
		!r.files.exists(d.Path) || !grants.HeldByItself(d.Path) {
		return ""
	}
	return g.String()
}

// asGrant returns the grant for the path of a denial alone.
func asGrant(d *sandbox.Denial) sandbox.Grant {
	level := sandbox.LevelRead
	if d.Op == sandbox.Write {
		level = sandbox.LevelWrite
	}
	return sandbox.Grant{Path: d.Path, Level: level}
}

// cacheTrees are whole caches, of which other tools and later runs execute parts.
var cacheTrees = []string{"/.cache", "/.npm", "/.cargo", "/.rustup", "/.gradle", "/.m2", "/.pnpm-store",
	"/.yarn", "/go", "/go/pkg", "/go/pkg/mod", "/.local", "/.local/share"}

// GrantWarning says, in a few words, what suggested flags open beyond what was denied, or why it is
// dangerous; empty for a narrow grant. Home is the home directory; it may be empty.
func GrantWarning(flags, home string) string {
	switch {
	case strings.HasPrefix(flags, wholeNetwork):
		return "opens the whole network"
	case strings.HasPrefix(flags, allSockets):
		return "opens all unix sockets"
	case strings.HasPrefix(flags, noSandbox):
		return "warning: builds no sandbox at all"
	}
	list, _ := sandbox.ParseGrants(flags)
	for _, g := range list {
		switch g.Name {
		case grants.Docker:
			return "warning: root on this machine"
		case grants.GrantHome:
			return "warning: shells, ssh and other programs outside run what is in them"
		}
		if hosts := grants.Hosts(g.Name); strings.HasPrefix(g.Name, grants.HostPrefix) && len(hosts) > 1 {
			return "opens " + strings.Join(hosts, ", ")
		}
		if g.Path == "" || g.Level != sandbox.LevelWrite {
			continue
		}
		if text := warningOf(g.Path, home); text != "" {
			return text
		}
	}
	return ""
}

// warningOf is Warning for writing below a path.
func warningOf(name, home string) string {
	at := name + "/"
	in := func(place string) bool { return strings.Contains(at, place) }
	cache := func(tree string) bool { return home != "" && name == home+tree }
	later := grants.LaterAt(name)
	switch {
	case in("/.git/hooks/") || strings.HasSuffix(name, "/.git"):
		return "warning: git outside runs what is in it"
	case in("/bin/") || in("/sbin/") || grants.InPath(name):
		return "warning: programs outside are run from it by name"
	case slices.ContainsFunc(cacheTrees, cache):
		return "warning: a whole cache, from which other programs run code"
	case later == grants.Starts:
		return "warning: programs outside run it when they start"
	case later == grants.Obeyed || home != "" && name == home+"/.config":
		return "warning: other programs read it, and it can make them run commands"
	case home != "" && inside(home, name):
		return "warning: a whole home directory"
	case name == "/" || !strings.Contains(strings.TrimPrefix(name, "/"), "/"):
		return "warning: a whole directory of the system"
	}
	return ""
}
