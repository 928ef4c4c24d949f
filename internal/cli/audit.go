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
	return audits.Run(ctx, env.audits(), &o.audit, words)
}

// audits returns the environment of commands about the audit log.
func (e *Env) audits() *audits.Env {
	return &audits.Env{Env: &e.Env, Print: e.print, Write: e.write, PrintJSON: e.printJSON,
		Printing: e.printing}
}

// note keeps what a command did that is no run.
func (e *Env) note(kind string, body map[string]any) error { return args.Note(&e.Env, kind, body) }
