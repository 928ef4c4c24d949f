// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/rules"
)

const configHelp = `Show, change, explain and check the configuration.

  sallyport config allow [--rw PATH] [--ro PATH] [--grant NAME] [--allow NAME]
                         [--allow-host PATTERN] [--net none|host] [--user]
                         [-C DIR]
  sallyport config show [--origin] [--json]
  sallyport config explain KEY|PROFILE|GRANT
  sallyport config check
  sallyport config schema

Settings come from, with later ones winning: the defaults; your own
$XDG_CONFIG_HOME/sallyport/config.toml (in ~/.config if it is not set);
.sallyport/config.toml of a trusted project, which can only narrow, except in
its table [project]; variables SALLYPORT_KEY; flags. The managed configuration,
/etc/sallyport/managed.toml and managed.d/*.toml, limits all of them. If a file
does not load, nothing runs.

allow adds to the table [project] of .sallyport/config.toml. It shows the
project's files as they will be and asks on the terminal whether to trust them.
If you say no or there is no terminal, nothing changes and the exit code is 123.

check reads all files and prints nothing if they load. schema prints a JSON
Schema for editors. show prints the settings in effect; with --origin also who
set each, and what the limits above cut.
`

func configFlags(o *options) []syntax.Flag {
	return append([]syntax.Flag{
		{Long: "origin", Set: syntax.SetOn(&o.origin), Help: "show who set each value, and what was cut"},
		{Long: "cd", Short: 'C', Value: "DIR", Kind: syntax.Directories, Set: syntax.SetText(&o.dir), Help: "the workspace (default current)"},
		{Long: "config", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&o.config), Help: "read FILE instead of your config.toml"},
		{Long: "no-config", Set: syntax.SetOn(&o.noConfig), Help: "read only the managed configuration"},
		o.jsonFlag(),
	}, allowFlags(o)...)
}

// configVerbs are the words after config.
var configVerbs = []string{"allow", "show", "explain", "check", "schema"}

func configCommand(ctx context.Context, env *Env, o *options, words []string) error {
	if len(words) == 0 {
		return explain.NewError("config needs a subcommand: allow, show, explain, check or schema; see sallyport help config")
	}
	expl := words[0] == "explain"
	switch {
	case expl && len(words) == 1:
		return explain.NewError("name a key, a profile or a grant: sallyport config explain limits.memory")
	case !expl && len(words) > 1:
		return explain.NewError("unexpected argument %s; see sallyport help config", syntax.QuoteFlag(words[1]))
	case words[0] != "allow" && (len(o.run.Given) > 0 || o.user):
		return explain.NewError(
			"--rw, --ro, --grant, --allow, --allow-host, --net and --user are for config allow")
	case words[0] == "schema":
		return env.printJSON(config.Schema())
	}
	run := &o.run
	run.Dir, run.Config, run.NoConfig = o.dir, o.config, o.noConfig
	dir, e, err := run.Settings(&env.Env)
	if err != nil {
		return err
	}
	switch {
	case words[0] == "allow":
		return allow(ctx, env, o, dir)
	case words[0] == "show":
		return env.answer(e.Show(o.origin), o.json, true)
	case expl:
		text, err := e.Explain(words[1])
		if err != nil {
			return explain.NewError("%v", err)
		}
		return env.print(text)
	case words[0] == "check":
		return checkConfig(env, e, dir)
	}
	return explain.NewError("unknown subcommand %s%s", syntax.QuoteFlag(words[0]),
		syntax.NearestClause(words[0], configVerbs, "see sallyport help config"))
}

// checkConfig reads the rules as well, and says what does not count.
func checkConfig(env *Env, e *config.Effective, dir string) error {
	for _, n := range e.Notes {
		env.say("warning: " + n)
	}
	set := rules.Load(rules.Host{Dir: dir, Home: env.Variable("HOME")}, e.Rules()...)
	return env.unloaded(set.Err(), dir, explain.CodeFailed)
}

// configWords completes the words of config.
func configWords(before []string) (syntax.FlagKind, []candidate) {
	var words []candidate
	switch {
	case len(before) == 0:
		for _, w := range configVerbs {
			words = append(words, candidate{w, ""})
		}
	case before[0] == "explain":
		for _, k := range config.Keys() {
			words = append(words, candidate{k.Name, k.Help})
		}
	}
	return syntax.Words, words
}
