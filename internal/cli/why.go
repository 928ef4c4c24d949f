// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/audits"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const whyHelp = `Explain how a run ended, what it was denied, and what would allow it.

  sallyport why [ID] [--json]
  sallyport why --list [--json]

Without ID it explains the last run; ID may be shortened. For each denial it
prints the rule and, if there is one, the smallest grant that allows it. At the
end it prints one command line that allows everything that can be allowed, and
one that adds this to the settings of the project.

Every run of this user is recorded in the audit log: the result without the
output, and the arguments except those that look like secrets by their names.
Values of variables are not recorded. See sallyport help audit.
`

func whyFlags(o *options) []syntax.Flag {
	return []syntax.Flag{{Long: "list", Set: syntax.SetOn(&o.list),
		Help: "list the recorded runs, the latest last"}, o.jsonFlag()}
}

func whyCommand(_ context.Context, env *Env, o *options, words []string) error {
	return audits.Why(env.audits(), o.list, o.json, strings.Join(words, ""))
}
