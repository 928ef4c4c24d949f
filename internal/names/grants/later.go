// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"path"
	"slices"
	"strings"
)

// Later is what other programs do with a file later.
type Later int

// What programs do with a file.
const (
	NotLater Later = iota
	Starts         // they run it at their start, or by its name
	Obeyed         // they obey it, and it can have them run something
)

// systemStarts begin the paths of what the system, shells and services run or obey.
var systemStarts = []string{
	"/etc/profile", "/etc/bash", "/etc/zsh/", "/etc/fish/", "/etc/environment", "/etc/cron", "/etc/init.d/",
	"/etc/systemd/", "/etc/pam.d/", "/etc/sudoers", "/etc/ssh/", "/etc/xdg/", "/etc/udev/", "/etc/apt/",
	"/etc/ld.so.", "/etc/polkit-1/", "/etc/dbus-1/", "/etc/NetworkManager/", "/etc/X11/", "/var/spool/cron/",
	"/etc/rc", "/etc/inittab", "/etc/anacrontab", "/etc/modules", "/etc/modprobe.d/", "/etc/logrotate.d/",
	"/etc/update-motd.d/", "/etc/skel/", "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow",
	"/etc/nsswitch.conf", "/etc/fstab", "/boot/",
}

// LaterAt is what other programs do with what is at a path: any directory above it may be a home directory.
func LaterAt(name string) Later {
	var homes []string
	for home := path.Dir(name); ; home = path.Dir(home) {
		homes = append(homes, home)
		if home == "/" || home == "." {
			return LaterIn(homes, name)
		}
	}
}

// LaterIn is [LaterAt] where the home directories are known.
func LaterIn(homes []string, name string) Later {
	whole := name + "/"
	if slices.ContainsFunc(systemStarts, func(at string) bool { return strings.HasPrefix(whole, at) }) {
		return Starts
	}
	table, found := homeFiles().later, NotLater
	for _, home := range homes {
		rest, inside := strings.CutPrefix(name, strings.TrimSuffix(home, "/")+"/")
		if home == "." {
			rest, inside = name, true
		}
		for ; inside && rest != "." && rest != "/"; rest = path.Dir(rest) {
			if later := table[rest]; later != NotLater && found != Starts {
				found = later
			}
		}
	}
	for at := name; found == NotLater && at != "/" && at != "."; at = path.Dir(at) {
		if _, ok := FindTool(path.Base(at)); ok { // in a project
			found = Obeyed
		}
	}
	return found
}

// HeldByItself reports whether a path is, in some home directory, a name that the sandbox protects also where
// its directory may be written: only an entry or a grant of its own opens it.
func HeldByItself(name string) bool {
	table := homeFiles().byName
	for home := path.Dir(name); strings.Contains(name, "/."); home = path.Dir(home) {
		rest := strings.TrimPrefix(strings.TrimPrefix(name, home), "/")
		if _, ok := table[rest]; ok && strings.HasPrefix(rest, ".") {
			return true
		}
		if home == "/" || home == "." {
			break
		}
	}
	return false
}
