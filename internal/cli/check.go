// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/sallyport-dev/sallyport/internal/checking"
	_ "github.com/sallyport-dev/sallyport/internal/quietlog" // before package rules
	"github.com/sallyport-dev/sallyport/rules"
)

const checkHelp = `Show what the rules say about a command. Nothing runs.

  sallyport check [--rules FILE]... [--json] -- PROGRAM [ARG...]
  sallyport check --explain -c 'SCRIPT'

The rules are those in $XDG_CONFIG_HOME/sallyport/rules/*.rules (~/.config if it
is not set), then those of --rules. The strictest rule that matches decides.
The command is taken as it is, not as a script for a shell, unless --explain is
given. The exit code is 1 if a rule file does not load.
`

func checkFlags(o *options) []flag {
	return []flag{
		{long: "rules", value: "FILE", kind: completeFiles, set: list(&o.rules), help: "read these rules as well (repeatable)"},
		{long: "no-config", set: on(&o.noConfig), help: "leave out the rules of the configuration"},
		{long: "resolve-host-executables", set: on(&o.resolve), help: "let rules for git match /usr/bin/git, too"},
		{long: "explain", set: on(&o.explain), help: "judge each command that it or its script may run"},
		{long: "script", short: 'c', value: "SCRIPT", set: text(&o.script), help: "explain bash -lc SCRIPT"},
		o.jsonFlag(),
	}
}

func checkCommand(_ context.Context, env *Env, o *options, words []string) error {
	switch {
	case o.script != "" && !o.explain:
		return failure("-c needs --explain: sallyport check --explain -c SCRIPT")
	case o.script != "" && len(words) > 0:
		return failure("both -c and a program given; remove one")
	case o.script == "" && len(words) == 0:
		return failure("no program given; try sallyport check -- git push")
	case env.Dir == "":
		return failure("the current directory no longer exists; change to another one")
	}
	if o.script != "" {
		words = []string{"bash", "-lc", o.script}
	}
	home := env.variable("HOME")
	q := checking.Question{Command: words, Files: o.rules, Host: rules.Host{Dir: env.Dir, Home: home}, Resolve: o.resolve}
	if !o.noConfig {
		q.Layers = checking.UserRules(env.variable("XDG_CONFIG_HOME"), home)
	}
	var answer fmt.Stringer
	var err error
	if o.explain {
		answer, err = checking.ExplainCommand(q)
	} else {
		answer, err = checking.Ask(q)
	}
	if err != nil {
		_, _ = io.WriteString(env.Stderr, checking.Explain(err, env.Dir)) // there is no other place to report it
		return exitCode(codeNo)
	}
	return env.answer(answer, o.json, true)
}

// checkedWords completes the command of check.
func checkedWords(before []string) (completionKind, []candidate) {
	if len(before) == 0 || before[len(before)-1] == "--" {
		return completePrograms, nil
	}
	return completeFiles, nil
}
