// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/buildinfo"
)

const versionHelp = `Print the version.

  sallyport version [--verbose] [--json]
`

func versionFlags(o *options) []flag {
	return []flag{{long: "verbose", short: 'v', set: on(&o.verbose), help: "one line each, the revision and its time too"}, o.jsonFlag()}
}

func versionCommand(_ context.Context, env *Env, o *options, _ []string) error {
	b := buildinfo.Read()
	switch {
	case o.json:
		return env.printJSON(b)
	case o.verbose:
		return env.print(b.Verbose())
	}
	return env.print(b.String())
}
