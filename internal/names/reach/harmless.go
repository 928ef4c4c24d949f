// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"net"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// A habit is something that programs try and go on without. A denial of it is counted, and
// explained on request; it is no reason to bother anybody, and not why a command failed.
type habit struct {
	why      string   // a few words
	programs []string // patterns for the base name of the executed file; nil means any program
	// paths are patterns. A "~" at the beginning is the home directory, "$config", "$cache" and
	// "$state" are the user's directories for those; "**/" at the beginning is any directory,
	// and "/**" at the end the path itself and everything below it.
	paths []string
	hosts []string // names and addresses that are connected to, without a port
	calls []string // ends of refused system calls
	// unless are words of the command line with which the command is about these files.
	unless []string
	// when are words of which the command line has one; nil is any.
	when []string
	// done says that the same denial makes a program fail that needs the file: it is harmless
	// only where the command succeeded.
	done bool
}

// habits returns the table. Each row was seen in a run that did its work all the same.
func habits() []habit {
	python := []string{"python*", "pypy*"}
	chromium := []string{"chromium*", "chrome*", "google-chrome*", "headless_shell"}
	return []habit{
		{why: "telemetry counters of Go", programs: []string{"go", "gofmt", "gopls", "vet", "compile", "link", "asm", "cgo", "cover", "buildid"},
			paths: []string{"$config/go/telemetry/**"}, unless: []string{"telemetry"}},
		{why: "telemetry counters of Go", programs: []string{"go"}, paths: []string{"$config", "$config/go"}, unless: []string{"telemetry", "env -w", "env -u"}},
		{why: "git's refresh of its index, which is optional", programs: []string{"git"}, paths: []string{"**/.git/index.lock", "**/.git/worktrees/*/index.lock"}, done: true},
		{why: "the history of a program that is typed to", programs: append([]string{
			"less", "bash", "zsh", "node", "gdb", "sqlite3", "psql", "mysql", "irb", "ruby*", "R",
			"ghci", "vim*", "vi",
		}, python...), paths: []string{
			"~/.lesshs*", "$state/lesshs*", "~/.python_history*", "~/.bash_history*", "~/.zsh_history*",
			"~/.node_repl_history*", "~/.gdb_history*", "**/.gdb_history",
			"~/.sqlite_history*", "~/.psql_history*", "~/.mysql_history*", "~/.irb_history*", "~/.Rhistory",
			"~/.ghc/**", "~/.viminf*",
		}},
		{why: "a place for vim's swap files, which tries others", programs: []string{"vim*", "vi"},
			paths: []string{"~/tmp/**", "/var/tmp/*.sw?", "/tmp/*.sw?"}},
		{why: "a cache of gdb", programs: []string{"gdb", "debuginfod-find"}, paths: []string{"$cache/gdb/**", "$cache/debuginfod_client/**"}},
		{why: "compiled Python next to its source", paths: []string{"**/__pycache__", "**/__pycache__/*"}},
		{why: "the cache of pip", programs: python, paths: []string{"$cache/pip/**"}, unless: []string{"pip cache"}},
		{why: "logs and notices of npm", programs: []string{"node"}, paths: []string{"~/.npm/_logs/**", "~/.npm/_update-notifier-last-checked"}},
		{why: "the place of npm's logs", programs: []string{"node"}, paths: []string{"~/.npm"},
			when: withoutCache},
		{why: "locks and usage times of cargo", programs: []string{"cargo"}, paths: []string{"~/.cargo/.package-cache*", "~/.cargo/.global-cache*"}},
		{why: "a test of pnpm for links", programs: []string{"node", "pnpm"}, paths: []string{"**/_tmp_*"}},
		{why: "settings of rustup, for its default", programs: []string{"rustup"}, paths: []string{"~/.rustup"}, unless: []string{"rustup", "cargo", "rustc"}},
		{why: "the table of mounts of util-linux", programs: []string{"mount", "umount"},
			paths: []string{"/run/mount/**"}},
		{why: "the record of failed logins", programs: []string{"su", "login"},
			paths: []string{"/var/log/btmp"}},
		{why: "records for the kernel's audit, which programs do without", calls: []string{"NETLINK_AUDIT)"}},
		{why: "news of devices for Chromium", programs: chromium, calls: []string{"NETLINK_KOBJECT_UEVENT)"}},
		{why: "a test of Chromium for IPv6", programs: chromium, hosts: []string{"2001:4860:4860::8888"}},
		// The proxy does not know the program; nothing but browsers asks there.
		{why: "updates of Chromium", hosts: []string{"clients2.google.com"}, unless: []string{"clients2.google.com"}},
		{why: "updates of Chromium", hosts: []string{"redirector.gvt1.com"}, unless: []string{"redirector.gvt1.com"}},
		{why: "updates of Chromium", hosts: []string{"update.googleapis.com"}, unless: []string{"update.googleapis.com"}},
		{why: "reports of crashes of Chromium", programs: chromium, paths: []string{"$config/chromium/Crash Reports/**"}},
		{why: "settings of the desktop", paths: []string{"$cache/dconf/**"}, unless: []string{"dconf"}},
		{why: "a cache of fonts or shaders", paths: []string{"$cache/fontconfig/**", "/var/cache/fontconfig/**", "$cache/mesa_shader_cache*/**"}},
	}
}

// withoutCache are commands of npm that make its cache for the logs alone.
var withoutCache = []string{"npm config", "npm get", "npm set ", "npm pkg", "npm version", "npm prefix"}

// Habit returns why a denial is known to be harmless in a command that ended with an exit
// code, or "".
func (r *DeniedRun) Habit(d *sandbox.Denial, exit int) string {
	if !d.Source.Evidence() {
		return ""
	}
	line := strings.Join(r.Args, " ")
	within := func(w string) bool { return strings.Contains(line, w) }
	for _, h := range habits() {
		matches := func(pattern string) bool { ok, _ := path.Match(pattern, path.Base(d.Program)); return ok }
		switch {
		case h.done && exit != 0,
			h.programs != nil && !slices.ContainsFunc(h.programs, matches),
			h.when != nil && !slices.ContainsFunc(h.when, within),
			slices.ContainsFunc(h.unless, within):
		case r.about(&h, d):
			return h.why
		}
	}
	return ""
}

// about returns whether a habit is about what was denied.
func (r *DeniedRun) about(h *habit, d *sandbox.Denial) bool {
	switch d.Op {
	case sandbox.Write:
		return slices.ContainsFunc(h.paths, func(p string) bool { return covers(r.place(p), d.Path) })
	case sandbox.Connect:
		host, _, err := net.SplitHostPort(d.Addr)
		return slices.Contains(h.hosts, host) || err != nil && slices.Contains(h.hosts, d.Addr)
	case sandbox.Syscall:
		return slices.ContainsFunc(h.calls, func(end string) bool { return strings.HasSuffix(d.Call, end) })
	}
	return false
}

// place puts the user's directories into a pattern; it is empty where they are not known.
func (r *DeniedRun) place(pattern string) string {
	first, rest, _ := strings.Cut(pattern, "/")
	var dir string
	switch first {
	default:
		return pattern
	case "~":
		dir = r.variable("HOME")
	case "$config":
		dir = r.below("XDG_CONFIG_HOME", ".config")
	case "$cache":
		dir = r.below("XDG_CACHE_HOME", ".cache")
	case "$state":
		dir = r.below("XDG_STATE_HOME", ".local/state")
	}
	if dir == "" {
		return ""
	}
	return strings.TrimSuffix(path.Clean(dir)+"/"+rest, "/")
}

// below returns the value of a variable, or else a directory in the home directory.
func (r *DeniedRun) below(name, dir string) string {
	if at := r.variable(name); at != "" {
		return at
	}
	if home := r.variable("HOME"); home != "" {
		return home + "/" + dir
	}
	return ""
}

// variable returns the absolute path in a variable of the command, or "".
func (r *DeniedRun) variable(name string) string {
	for _, e := range slices.Backward(r.Env) { // the last one counts
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			if path.IsAbs(value) {
				return value
			}
			return ""
		}
	}
	return ""
}

// covers returns whether a pattern of a habit covers a path.
func covers(pattern, name string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/**"); ok {
		for at := name; at != "/" && at != "."; at = path.Dir(at) {
			if covers(dir, at) {
				return true
			}
		}
		return false
	}
	if tail, ok := strings.CutPrefix(pattern, "**/"); ok {
		parts, want := strings.Split(name, "/"), strings.Count(tail, "/")+1
		pattern, name = tail, strings.Join(parts[max(len(parts)-want, 0):], "/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
