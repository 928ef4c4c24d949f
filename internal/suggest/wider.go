// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/services"
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
func (r *Run) wider(d *sandbox.Denial) string {
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
func (r *Run) widerPath(d *sandbox.Denial) string {
	if d.Path == "" || d.Source == sandbox.Guessed || r.Policy.Rule(d.Access) == sandbox.Allow {
		return ""
	}
	g := r.asGrant(d)
	g.Path = r.existing(d.Path)
	if r.Policy.With(sandbox.Grant{Path: g.Path, Level: g.Level}).Rule(d.Access) != sandbox.Allow {
		return "" // denied by an entry, which no grant opens
	}
	if g.Path == "/" || ofKernel(d.Path) {
		return noSandbox
	}
	return g.String()
}

// asGrant returns the grant for the path of a denial alone.
func (r *Run) asGrant(d *sandbox.Denial) sandbox.Grant {
	level := sandbox.LevelRead
	if d.Op == sandbox.Write {
		level = sandbox.LevelWrite
	}
	return sandbox.Grant{Path: d.Path, Level: level}
}

// startFiles are read by shells and by the system at a login or when a job is due.
var startFiles = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".cshrc", ".tcshrc", ".login", ".kshrc", ".mkshrc", ".inputrc", ".xprofile", ".xinitrc", ".xsession", "profile", "bash.bashrc", "bashrc", "environment", "crontab",
}

// startPlaces are directories of such files, as they stand in a path.
var startPlaces = []string{
	"/.config/fish/", "/.config/autostart/", "/.config/systemd/", "/.config/environment.d/", "/.bashrc.d/", "/.zsh/", "/.oh-my-zsh/",
	"/etc/profile.d/", "/etc/zsh/", "/etc/fish/", "/etc/cron", "/etc/init.d/", "/etc/systemd/", "/var/spool/cron/", "/.ssh/", "/.local/bin/",
}

// cacheTrees are whole caches, of which other tools and later runs execute parts.
var cacheTrees = []string{"/.cache", "/.npm", "/.cargo", "/.rustup", "/.gradle", "/.m2", "/.pnpm-store", "/.yarn", "/go", "/go/pkg", "/go/pkg/mod", "/.local", "/.local/share"}

// Warning says, in a few words, what suggested flags open beyond what was denied, or why it is
// dangerous; empty for a narrow grant. Home is the home directory; it may be empty.
func Warning(flags, home string) string {
	switch {
	case strings.HasPrefix(flags, wholeNetwork):
		return "opens the whole network"
	case strings.HasPrefix(flags, allSockets):
		return "opens all unix sockets"
	case strings.HasPrefix(flags, noSandbox):
		return "warning: builds no sandbox at all"
	}
	grants, _ := sandbox.ParseGrants(flags)
	for _, g := range grants {
		if g.Name == services.Docker {
			return "warning: root on this machine"
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
	switch {
	case slices.Contains(startFiles, path.Base(name)) || slices.ContainsFunc(startPlaces, in):
		return "warning: programs outside run it at their start"
	case in("/.git/hooks/") || strings.HasSuffix(name, "/.git"):
		return "warning: git outside runs what is in it"
	case slices.ContainsFunc(cacheTrees, cache):
		return "warning: a whole cache, from which other programs run code"
	case home != "" && inside(home, name):
		return "warning: a whole home directory"
	case name == "/" || !strings.Contains(strings.TrimPrefix(name, "/"), "/"):
		return "warning: a whole directory of the system"
	}
	return ""
}
