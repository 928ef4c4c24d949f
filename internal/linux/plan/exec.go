// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strconv"
	"strings"
)

// An Exec is the launch of a plan on systems without a launch script: one program that
// confines itself and then becomes the command, or the command itself. It is performed as
// it is.
type Exec struct {
	Path string   `json:"path"` // relative to Dir, or absolute
	Args []string `json:"args"` // with the program's own name first
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// direct returns the launch of a command as it is.
func direct(r *Request) *Exec {
	return &Exec{Path: r.execPath(), Args: r.argv(), Env: slices.Clone(r.environ()), Dir: r.Spec.Dir}
}

// String prints the arguments in order, a profile as it is, everything else quoted where
// that is needed. It leaves the environment out, which may hold secrets.
func (e *Exec) String() string {
	var b strings.Builder
	for i, a := range e.Args {
		switch {
		case i == 0:
			b.WriteString(e.Path)
		case i > 1 && e.Args[i-1] == "-p":
			b.WriteString(a)
		case strings.ContainsFunc(a, func(r rune) bool {
			return r <= ' ' || r == '"' ||
				!strconv.IsPrint(r)
		}):
			b.WriteString(strconv.Quote(a))
		default:
			b.WriteString(a)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
