// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/cli/consoles"
	"github.com/sallyport-dev/sallyport/internal/server/mcp"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
)

func consoleFlags(o *options) []syntax.Flag { return consoles.Flags(&o.console) }

func consoleCommand(ctx context.Context, env *Env, o *options, _ []string) error {
	daemon, err := env.withDaemon()
	if err != nil {
		return err
	}
	return consoles.Run(ctx, &consoles.Env{Env: &env.Env, Sessions: daemon, Print: env.print, Say: env.say,
		Token: mcp.Token, Upstream: env.upstream, Proposed: env.proposed,
		Allowed: func(settings []trust.Setting, dir string) error { return noteAllowed(env, settings, dir) },
	}, &o.console)
}
