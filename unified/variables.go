// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"maps"

	"github.com/sallyport-dev/sallyport"
)

// defaultTerm is the terminal type of commands. A dumb terminal keeps programs from
// coloring and positioning text that a model has to read.
const defaultTerm = "dumb"

// Variables returns the variables that every command gets, whatever it inherits: no
// colors, no pager, UTF-8. The terminal type term becomes TERM; empty means
// "dumb". The variable that says that an agent runs the command is CODEX_CI if
// compatible is true, otherwise SALLYPORT_CI. The caller owns the map.
func Variables(term string, compatible bool) map[string]string {
	agent := "SALLYPORT_CI"
	if compatible {
		agent = "CODEX_CI"
	}
	return map[string]string{
		"NO_COLOR": "1", "TERM": cmp.Or(term, defaultTerm), "COLORTERM": "",
		"LANG": "C.UTF-8", "LC_CTYPE": "C.UTF-8", "LC_ALL": "C.UTF-8",
		"PAGER": "cat", "GIT_PAGER": "cat", "GH_PAGER": "cat",
		agent: "1",
	}
}

// withVariables returns the policy with Variables, which override inherited variables and
// those that the policy sets.
func withVariables(p sallyport.EnvPolicy, term string, compatible bool) sallyport.EnvPolicy {
	runtime := maps.Clone(p.Runtime)
	if runtime == nil {
		runtime = make(map[string]string)
	}
	maps.Copy(runtime, Variables(term, compatible))
	p.Runtime = runtime
	return p
}
