// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const doctorHelp = `Check what this machine can enforce and how to fix what is missing.

  sallyport doctor [--json]
  sallyport doctor --clean [--json]

It tries every part of the sandbox, and lists the names that run --grant and
run --allow take. The exit code is 0 if the default sandbox is available, else
1.

With --clean it removes what killed runs of this user left behind: private /tmp
directories, and quarantined files that are old or over the limit. What running
commands need stays. The exit code is 1 if something could not be removed.
`

func doctorFlags(o *options) []syntax.Flag {
	return []syntax.Flag{{Long: "clean", Set: syntax.SetOn(&o.clean), Help: "clean up instead"}, o.jsonFlag()}
}

func doctorCommand(ctx context.Context, env *Env, o *options, _ []string) error {
	if o.clean {
		c := explain.Cleaned(dirs.Clean())
		return env.answer(c, o.json, c.OK)
	}
	checks := append(explain.Checks(ctx), env.upstream(ctx))
	d := explain.Diagnose(checks, explain.Levels(ctx))
	return env.answer(d, o.json, d.OK)
}

// upstream checks the proxy that the settings name.
func (env *Env) upstream(ctx context.Context) explain.Check {
	c, err := args.LoadConfig(&env.Env, cmp.Or(env.Dir, "/"), "", false)
	if err != nil {
		return explain.Upstream(ctx, nil, err)
	}
	e, err := c.Resolve(nil)
	if err != nil {
		return explain.Upstream(ctx, nil, err)
	}
	u, err := e.Upstream()
	return explain.Upstream(ctx, u, err)
}
