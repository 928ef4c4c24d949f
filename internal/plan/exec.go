// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// An Exec is the launch of a plan on systems without a launch script: one
// program that confines itself and then becomes the command, or the command
// itself. It is data; whoever performs it adds nothing.
type Exec struct {
	Path string   `json:"path"` // absolute
	Args []string `json:"args"` // with the program's own name first
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// A Pattern gives every path that a pattern matches, and what lies below it, at
// most a level, whether it exists already or comes later. Patterns hold against
// every rule. Only systems whose sandbox judges by name can use them.
type Pattern struct {
	Glob  string        `json:"glob"`  // for [sandbox.CompileGlob]
	Level sandbox.Level `json:"level"` // LevelDeny or LevelRead
}

// direct is the launch of a command as it is.
func direct(r *Request) *Exec {
	return &Exec{Path: r.Program, Args: r.argv(), Env: slices.Clone(r.Env), Dir: r.Spec.Dir}
}

// setVar returns an environment in which a variable has a value.
func setVar(env []string, name, value string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, name+"=") })
	return append(out, name+"="+value)
}

// String prints the launch for people: the arguments in order, a profile as it
// is, everything else quoted where that is needed. The environment is left out:
// it may hold secrets.
func (e *Exec) String() string {
	var b strings.Builder
	for i, a := range e.Args {
		switch {
		case i == 0:
			b.WriteString(e.Path)
		case i > 1 && e.Args[i-1] == "-p":
			b.WriteString(a)
		case strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r == '"' || !strconv.IsPrint(r) }):
			b.WriteString(strconv.Quote(a))
		default:
			b.WriteString(a)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
