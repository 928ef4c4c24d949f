// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"maps"

	"github.com/sallyport-dev/sallyport/internal/environ"
)

// DefaultTerm is the terminal type that commands are told. A dumb terminal keeps
// programs from coloring and positioning what a model has to read.
const DefaultTerm = "dumb"

// ours tells programs that an agent runs them; codex is the name for it that tools
// which look for Codex know.
const (
	ours  = "SALLYPORT_CI"
	codex = "CODEX_CI"
)

// Variables returns the variables that every command gets, whatever it inherits: no
// colors, no pager, UTF-8. The terminal type term is TERM; empty means [DefaultTerm].
// The mark that an agent runs the command is CODEX_CI where compatible is true and
// SALLYPORT_CI otherwise. The map is the caller's.
func Variables(term string, compatible bool) map[string]string {
	if term == "" {
		term = DefaultTerm
	}
	mark := ours
	if compatible {
		mark = codex
	}
	return map[string]string{
		"NO_COLOR": "1", "TERM": term, "COLORTERM": "",
		"LANG": "C.UTF-8", "LC_CTYPE": "C.UTF-8", "LC_ALL": "C.UTF-8",
		"PAGER": "cat", "GIT_PAGER": "cat", "GH_PAGER": "cat",
		mark: "1",
	}
}

// withVariables returns the policy with our variables in it. They win over everything
// that the command inherits or the policy sets.
func withVariables(p environ.Policy, term string, compatible bool) environ.Policy {
	own := maps.Clone(p.Runtime)
	if own == nil {
		own = make(map[string]string)
	}
	maps.Copy(own, Variables(term, compatible))
	p.Runtime = own
	return p
}
