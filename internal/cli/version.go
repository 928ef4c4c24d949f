// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const versionHelp = `Print the version.

  sallyport version [--verbose] [--json]
`

func versionFlags(o *options) []syntax.Flag {
	return []syntax.Flag{{Long: "verbose", Short: 'v', Set: syntax.SetOn(&o.verbose),
		Help: "one line each, the revision and its time too"}, o.jsonFlag()}
}

func versionCommand(_ context.Context, env *Env, o *options, _ []string) error {
	b := hostfacts.ReadBuild()
	switch {
	case o.json:
		return env.printJSON(b)
	case o.verbose:
		return env.print(b.Verbose())
	}
	return env.print(b.String())
}
