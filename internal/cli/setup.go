// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/agents/install"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const setupHelp = `Put sallyport under an agent: as MCP server and as hook.

  sallyport setup claude|codex|cursor|vscode|gemini

It does what sallyport mcp install and sallyport hook install do: it shows the
changes of all files, asks once on the terminal, and writes them. The MCP server
gives the agent sessions, waits and approvals; the hook judges and contains the
commands that the agent runs itself. To remove both: sallyport setup AGENT
--uninstall. The exit code is 123 if you say no.
`

func setupFlags(o *options) []syntax.Flag {
	return append(installFlags(o), syntax.Flag{Long: "yes", Short: 'y', Set: syntax.SetOn(&o.install.yes),
		Help: "do not ask"})
}

func setupWords(before []string) (syntax.FlagKind, []candidate) {
	return agentNames(before, install.MCP)
}

func setupCommand(ctx context.Context, env *Env, o *options, words []string) error {
	agent, _, err := agentAndExtra(nil, words, "setup", install.MCP)
	if err != nil {
		return err
	}
	i := &o.install
	options, err := i.options(env, agent, nil)
	if err != nil {
		return err
	}
	parts := []install.Part{install.MCP}
	if slices.Contains(install.Agents(install.Hook), agent) {
		parts = append(parts, install.Hook)
	}
	changes, err := i.prepare(options, parts...)
	if err != nil {
		return err
	}
	if err := i.show(env, changes); err != nil {
		return err
	}
	if len(parts) == 1 {
		err = env.print(agent + " has no contract for a hook: only the MCP server is set up, and commands " +
			"that the" +
			" agent runs by itself are not contained.\n")
	}
	if err == nil && slices.ContainsFunc(changes, (*install.Change).Changes) && !i.yes && !i.dryRun {
		err = askSetup(ctx, changes)
	}
	if err != nil {
		return err
	}
	return i.apply(env, options, changes, parts...)
}

// askSetup asks whether to make changes.
func askSetup(ctx context.Context, changes []*install.Change) (err error) {
	ctx, stop := tty.UntilSignal(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer stop()
	t, err := tty.OpenPrompt(ctx)
	if err != nil {
		return explain.ErrorWith(explain.CodeFailed, sallyport.EndFailed, "not set up: "+explain.OneLine(err),
			"run this on a terminal, or add --yes to be asked nothing")
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	var files []string
	for _, c := range changes {
		if c.Changes() {
			files = append(files, text.Word(c.Path))
		}
	}
	if err := t.Show("sallyport: change " + strings.Join(files, " and ") + "?\n"); err != nil {
		return err
	}
	key, err := t.Ask(tty.Choice{Key: "y", Words: []string{"yes"}, Text: "change"},
		tty.Choice{Key: "n", Words: []string{"no"}, Text: "change nothing"})
	if key == "y" && err == nil {
		return nil
	}
	return explain.ErrorWith(explain.CodeRefused, sallyport.EndRefused, "not set up: nothing was changed", "")
}
