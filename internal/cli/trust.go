// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const trustHelp = `Show a project's settings for sallyport and ask whether to trust them.

  sallyport trust [DIR]
  sallyport trust --list [--json]
  sallyport trust --revoke [DIR]

The files are .sallyport/config.toml and .sallyport/rules/*.rules in DIR (the
current directory by default). They are shown, and you answer, on the terminal;
no flag answers for you. If a file changes later, it is no longer trusted. The
exit code is 123 if you say no or there is no terminal, 1 if there is nothing to
trust or to revoke.
`

func trustFlags(o *options) []syntax.Flag {
	return []syntax.Flag{
		{Long: "list", Set: syntax.SetOn(&o.list), Help: "list the projects that are trusted"},
		{Long: "revoke", Set: syntax.SetOn(&o.revoke), Help: "forget that the files were trusted"},
		o.jsonFlag(),
	}
}

func trustCommand(ctx context.Context, env *Env, o *options, words []string) error {
	dir := filepath.Join(words...)
	switch {
	case o.list && (o.revoke || dir != ""):
		return explain.NewError("--list takes neither --revoke nor a directory; remove one")
	case o.list:
		records, err := trust.List()
		return errors.Join(env.answer(trust.Listing{Type: "trust",
			Projects: append([]trust.Record{}, records...)}, o.json, true), err)
	case o.json:
		return explain.NewError("--json is for the list: sallyport trust --list --json")
	case env.Dir == "" && !filepath.IsAbs(dir):
		return explain.NewError("the current directory no longer exists; name the project by its absolute path")
	case !filepath.IsAbs(dir):
		dir = filepath.Join(env.Dir, dir)
	}
	if !o.revoke {
		return askTrust(ctx, env, dir)
	}
	found, err := trust.Revoke(dir)
	if err == nil && found {
		err = env.note("trust", map[string]any{"action": "revoked", "dir": dir})
	}
	if err == nil && !found {
		err = explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, text.Word(dir)+" was not trusted",
			"sallyport trust --list shows trusted projects")
	}
	return err
}

// askTrust asks the user to trust a project.
func askTrust(ctx context.Context, env *Env, dir string) error {
	p, err := trust.Read(dir)
	switch {
	case err != nil:
		return err
	case p.State == trust.None:
		return explain.ErrorWith(explain.CodeNo, sallyport.EndFailed, "nothing to trust: "+text.Word(dir)+
			" has neither .sallyport/config.toml nor .sallyport/rules/*.rules", "")
	case p.State == trust.Trusted:
		return env.print(text.Word(p.Dir) + " is trusted already.\n")
	}
	// A signal is no, and the terminal gets its modes back.
	ctx, stop := tty.UntilSignal(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	switch yes, err := p.Ask(ctx); {
	case err != nil && ctx.Err() == nil:
		return explain.ErrorWith(explain.CodeRefused, sallyport.EndRefused, "not trusted: "+
			explain.OneLine(err), "run sallyport trust on a terminal")
	case !yes:
		return explain.ErrorWith(explain.CodeRefused, sallyport.EndRefused,
			"not trusted: nothing was recorded", "")
	}
	err = p.Trust()
	if err == nil {
		err = env.note("trust", map[string]any{"action": "trusted", "dir": p.Dir})
	}
	if err != nil {
		return err
	}
	return env.print("Trusted " + text.Word(p.Dir) + ".\n")
}
