// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/audits"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

func auditFlags(o *options) []syntax.Flag { return audits.Flags(&o.audit) }

func auditCommand(ctx context.Context, env *Env, o *options, words []string) error {
	return audits.Run(ctx, &audits.Env{Env: &env.Env, Print: env.print, Write: env.write,
		PrintJSON: env.printJSON, Printing: env.printing}, &o.audit, words)
}

// note keeps what a command did that is no run.
func (e *Env) note(kind string, body map[string]any) error { return args.Note(&e.Env, kind, body) }
