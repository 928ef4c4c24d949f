// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// shells read a script from an option, a file or the standard input.
var shells = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields("ash bash csh dash elvish fish ksh ksh93 mksh nu oksh osh pdksh posh rbash rc rksh rzsh sh tcsh xonsh yash ysh zsh") {
		all[name] = true
	}
	return all
})

// IsShell reports whether a program has the name of a shell.
func IsShell(name string) bool { return shells()[name] }

// Login reports whether a command is a shell that reads the profile of its user.
func Login(args []string) bool {
	base := path.Base(args[0])
	if strings.HasPrefix(base, "-") {
		return true
	}
	return IsShell(base) && slices.ContainsFunc(args[1:], func(w string) bool {
		return w == "--login" || len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w, "l")
	})
}

// builtins are commands that shells have themselves, whatever PATH leads to.
var builtins = []string{
	".", ":", "[", "alias", "bg", "break", "builtin", "cd", "command", "continue", "declare", "dirs", "echo",
	"eval", "exec", "exit", "export",
	"false", "fg", "getopts", "hash", "jobs", "kill", "let", "local", "popd", "printf", "pushd", "pwd",
	"read", "readonly", "return", "set",
	"shift", "source", "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias",
	"unset", "wait",
}

// Builtin reports whether shells run a command themselves.
func Builtin(name string) bool { return slices.Contains(builtins, name) }
