// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const grantsHelp = `List the named grants that run --grant NAME takes, and what each opens.

  sallyport grants [--json]

A grant marked with ! has a warning. sallyport doctor prints the warnings, and
what stays closed.
`

func grantsFlags(o *options) []syntax.Flag { return []syntax.Flag{o.jsonFlag()} }

// A grantList is the answer of the command.
type grantList struct {
	Type   string               `json:"type"` // "grants"
	Grants []protect.NamedGrant `json:"grants"`
}

func grantsCommand(_ context.Context, env *Env, o *options, _ []string) error {
	return env.answer(grantList{"grants", protect.NamedGrants()}, o.json, true)
}

// String returns a line for each grant, of 80 columns at most.
func (l grantList) String() string {
	const names, most = 23, 80
	var b strings.Builder
	for _, g := range l.Grants {
		mark := " "
		if g.Warning != "" {
			mark = "!"
		}
		line := fmt.Sprintf("%s %-*s %s", mark, names, g.Name, g.Opens)
		if first, _, cut := strings.Cut(line, " ("); cut {
			line = first
		}
		if len(line) > most {
			line = line[:strings.LastIndexAny(line[:most-len(" ...")], " ")]
			line = strings.TrimRight(line, ",:;") + " ..."
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("\n! has a warning; sallyport doctor prints it, and what stays closed.\n")
	return b.String()
}
