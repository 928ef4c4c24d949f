// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import "github.com/sallyport-dev/sallyport/internal/command/programs"

// Carries says what the value of an environment variable has programs run or load, if
// [programs.RunsCode] is true of its name: commands, whose programs are looked up in PATH, and the
// paths of files and directories, which may be relative. Code says that the value is code itself, or
// leads to some in a way that is not known.
func Carries(name, value string) (commands []Command, paths []string, code bool) {
	script, paths, code := programs.Carries(name, value)
	if script == "" {
		return nil, paths, code
	}
	r := Read([]string{"sh", "-c", script})
	return r.Plain, nil, r.Opaque != "" && r.Opaque != Empty
}

// Builtin reports whether a shell that finds a command in its script runs it itself. Variables of
// the environment may have it run a function in its place, see [programs.Alters].
func (c *Command) Builtin() bool {
	return c.Line > 0 && programs.Builtin(c.Args[0])
}
