// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/cli/getopt"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
)

const versionHelp = `Print the version.

  sallyport version [--verbose] [--json]
`

func versionFlags(o *options) []getopt.Flag {
	return []getopt.Flag{{Long: "verbose", Short: 'v', Set: getopt.On(&o.verbose),
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
