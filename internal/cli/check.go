// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	_ "github.com/sallyport-dev/sallyport/internal/quietlog" // before package rules
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/rules"
)

const checkHelp = `Show what the rules say about a command. Nothing runs.

  sallyport check [--rules FILE]... [--json] -- PROGRAM [ARG...]
  sallyport check --explain [FLAGS of run] -c 'SCRIPT'

The rules are those of the configuration (sallyport config show lists the
files) and of --rules. The strictest rule that matches decides. Without
--explain, the command is taken literally, not as a shell script. With
--explain, it also takes the flags of run, and shows whether the command would
run and in what sandbox. The exit code is 1 if a rule file does not load.
`

func checkFlags(o *options) []syntax.Flag {
	flags := []syntax.Flag{
		{Long: "rules", Value: "FILE", Kind: syntax.Files, Set: syntax.SetList(&o.rules), Help: "add the rules in FILE (repeatable)"},
		{Long: "no-config", Set: syntax.SetOn(&o.noConfig), Help: "leave out the rules of the configuration"},
		{Long: "resolve-host-executables", Set: syntax.SetOn(&o.resolve), Help: "let rules for git also match /usr/bin/git"},
		{Long: "explain", Set: syntax.SetOn(&o.explain), Help: "explain each command that it or its script may run"},
		{Long: "script", Short: 'c', Value: "SCRIPT", Set: syntax.SetText(&o.script), Help: "explain a script, as run -c SCRIPT"},
		{Long: "help", Short: 'h', Set: syntax.SetOn(&o.help), Hidden: true},
		o.jsonFlag(),
	}
	own, ofRun := flags, o.run.Flags()
	for i := range ofRun {
		f := &ofRun[i]
		if syntax.FindLong(own, f.Long) == nil && f.Long != "command" {
			set := f.Set
			f.Hidden, f.Set = true, func(v string) error { o.runFlag = "--" + f.Long; return set(v) }
			flags = append(flags, *f)
		}
	}
	return flags
}

func checkCommand(ctx context.Context, env *Env, o *options, words []string) error {
	switch {
	case o.script != "" && !o.explain:
		return explain.NewError("-c needs --explain: sallyport check --explain -c SCRIPT")
	case o.runFlag != "" && o.runFlag != "--config" && !o.explain:
		return explain.NewError("%s needs --explain; the rules say nothing about the sandbox", o.runFlag)
	case o.script != "" && len(words) > 0:
		return explain.NewError("both -c and a program given; remove one")
	case o.script == "" && len(words) == 0:
		return explain.NewError("no program given; try sallyport check -- git push")
	case env.Dir == "":
		return explain.NewError("the current directory no longer exists; change to another one")
	}
	run := &o.run
	run.NoConfig, run.Cmd.Script, run.HasScript = o.noConfig, o.script, o.script != ""
	dir, err := run.Directory(&env.Env)
	if err != nil {
		return err
	}
	e, err := run.Configure(&env.Env, dir)
	if err != nil {
		return noAnswer(err)
	}
	q := explain.Question{Command: words, Layers: e.Rules(), Files: o.rules,
		Host: rules.Host{Dir: dir, Home: env.Variable("HOME")}, Resolve: o.resolve}
	var answer fmt.Stringer
	if o.explain {
		answer, err = run.Explain(ctx, &env.Env, q, e)
	} else {
		answer, err = explain.Ask(q)
	}
	if err != nil {
		return env.unloaded(err, env.Dir, explain.CodeNo)
	}
	return env.answer(answer, o.json, true)
}

// unloaded prints what is wrong with rules that do not load, with places as from a directory, and returns an
// exit code; other errors stay as they are.
func (env *Env) unloaded(err error, dir string, code int) error {
	if load := new(rules.LoadError); errors.As(err, &load) {
		// there is no other place to report it
		_, _ = io.WriteString(env.Stderr, explain.ExplainCheck(err, dir))
		return explain.ExitCode(code)
	}
	return err
}

// noAnswer gives an error of the configuration the exit code of a file of rules that does not
// load.
func noAnswer(err error) error {
	e := *explain.Classify(err)
	if e.Code == explain.CodeFailed {
		e.Code = explain.CodeNo
	}
	return &e
}

// checkedWords completes the command of check.
func checkedWords(before []string) (syntax.FlagKind, []candidate) {
	if len(before) == 0 || before[len(before)-1] == "--" {
		return syntax.Programs, nil
	}
	return syntax.Files, nil
}
