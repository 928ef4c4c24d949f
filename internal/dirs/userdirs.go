// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
)

// Variables of the environment that say where settings are read.
const (
	homeVariable   = "HOME"
	configVariable = "XDG_CONFIG_HOME"
	fileVariable   = "SALLYPORT_CONFIG"
)

// own is the name of the directory of settings.
const own = "sallyport"

// managed is where the administrator's settings are. The environment does not change it.
const managed = "/etc/sallyport"

// Config returns the directory of the user's settings, as the XDG base directory rules have it:
// $XDG_CONFIG_HOME/sallyport or, where that variable is not an absolute path,
// $HOME/.config/sallyport. It is false if neither names one. Nothing may exist there, and there
// may be links on the way.
func Config(env func(string) string) (dir string, ok bool) {
	if d := env(configVariable); filepath.IsAbs(d) {
		return filepath.Join(d, own), true
	}
	if home := env(homeVariable); filepath.IsAbs(home) {
		return inHome(home), true
	}
	return "", false
}

// DefaultRules returns the rule file that approvals write to; empty where there is no [Config].
func DefaultRules(env func(string) string) string {
	dir, ok := Config(env)
	if !ok {
		return ""
	}
	return filepath.Join(dir, "rules", "default.rules")
}

// ProtectedDirs returns the directories of settings that this run or a later one may read, sorted:
// that of the environment, those in the homes of [credentials.Homes], because HOME and
// XDG_CONFIG_HOME may be set for this run only, and the administrator's. Any may be missing,
// and there may be links on the way.
func ProtectedDirs(env func(string) string, homes []string) []string {
	dirs := []string{managed}
	if d, ok := Config(env); ok {
		dirs = append(dirs, d)
	}
	for _, home := range homes {
		dirs = append(dirs, inHome(home))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// ProtectedFile returns the file that SALLYPORT_CONFIG names in place of the user's, or "". A
// relative name begins at the working directory of this process, and "~/" at $HOME.
func ProtectedFile(env func(string) string) string {
	name := env(fileVariable)
	if name == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		name = filepath.Join(env(homeVariable), rest)
	}
	name, _ = filepath.Abs(name) // an error is that of a working directory that is gone
	return name
}

// Usual returns the directories of settings that no run can write to, whatever the environment
// says, sorted: the administrator's, and that in the home of the user database, if this user has
// one. Other directories of [ProtectedDirs] are closed to the runs that know them.
func Usual() []string {
	dirs := []string{managed}
	if home := grants.DatabaseHome(); filepath.IsAbs(home) && home != "/" {
		dirs = append(dirs, inHome(home))
	}
	return dirs
}

func inHome(home string) string { return filepath.Join(home, ".config", own) }
