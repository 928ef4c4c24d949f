// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/sallyport-dev/sallyport/internal/checking"
	"github.com/sallyport-dev/sallyport/internal/config"
	_ "github.com/sallyport-dev/sallyport/internal/quietlog" // before package rules
	"github.com/sallyport-dev/sallyport/rules"
)

const checkHelp = `Show what the rules say about a command. Nothing runs.

  sallyport check [--rules FILE]... [--json] -- PROGRAM [ARG...]
  sallyport check --explain [FLAGS of run] -c 'SCRIPT'

The rules are those of the configuration (sallyport config show lists the
files), then those of --rules. The strictest rule that matches decides. The
command is taken as it is, not as a script for a shell, unless --explain is
given, which also takes the flags of run and says whether and in what sandbox
it would run. The exit code is 1 if a rule file does not load.
`

func checkFlags(o *options) []flag {
	flags := []flag{
		{long: "rules", value: "FILE", kind: completeFiles, set: list(&o.rules), help: "read these rules as well (repeatable)"},
		{long: "no-config", set: on(&o.noConfig), help: "leave out the rules of the configuration"},
		{long: "resolve-host-executables", set: on(&o.resolve), help: "let rules for git match /usr/bin/git, too"},
		{long: "explain", set: on(&o.explain), help: "judge each command that it or its script may run"},
		{long: "script", short: 'c', value: "SCRIPT", set: text(&o.script), help: "explain bash -lc SCRIPT"},
		{long: "help", short: 'h', set: on(&o.help), hidden: true},
		o.jsonFlag(),
	}
	own, ofRun := flags, runFlags(&o.run)
	for i := range ofRun {
		f := &ofRun[i]
		if findLong(own, f.long) == nil && f.long != "command" {
			set := f.set
			f.hidden, f.set = true, func(v string) error { o.runFlag = "--" + f.long; return set(v) }
			flags = append(flags, *f)
		}
	}
	return flags
}

func checkCommand(_ context.Context, env *Env, o *options, words []string) error {
	switch {
	case o.script != "" && !o.explain:
		return failure("-c needs --explain: sallyport check --explain -c SCRIPT")
	case o.runFlag != "" && o.runFlag != "--config" && !o.explain:
		return failure("%s needs --explain; the rules say nothing about the sandbox", o.runFlag)
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
	run := &o.run
	run.noConfig = o.noConfig
	dir, err := run.directory(env)
	if err != nil {
		return err
	}
	e, err := run.configure(env, dir)
	if err != nil {
		return noAnswer(err)
	}
	q := checking.Question{Command: words, Layers: e.Rules(), Files: o.rules, Host: rules.Host{Dir: dir, Home: env.variable("HOME")}, Resolve: o.resolve}
	var answer fmt.Stringer
	if o.explain {
		answer, err = explainRunOf(q, run, e, dir, env.variable("HOME"))
	} else {
		answer, err = checking.Ask(q)
	}
	var load *rules.LoadError
	switch {
	case errors.As(err, &load):
		_, _ = io.WriteString(env.Stderr, checking.Explain(err, env.Dir)) // there is no other place to report it
		return exitCode(codeNo)
	case err != nil:
		return err
	}
	return env.answer(answer, o.json, true)
}

// noAnswer gives an error of the configuration the exit code of a file of rules that does not
// load.
func noAnswer(err error) error {
	e := *classify(err)
	if e.code == codeFailed {
		e.code = codeNo
	}
	return &e
}

// explainRunOf explains a command, and the run of it that flags and settings describe.
func explainRunOf(q checking.Question, run *runOptions, e *config.Effective, dir, home string) (fmt.Stringer, error) {
	policy, err := run.policy(dir, home)
	if err != nil {
		return nil, err
	}
	q.Approval, q.SafeList, q.Strict = run.approvalPolicy(e), e.ReadOnlyRules(), e.StrictReview()
	return checking.ExplainRun(q, checking.Sandbox{
		Mode: policy.Name(), Network: policy.Network().String(), Level: cmp.Or(run.level, "bwrap"),
		Write: run.writable, Read: run.readable, Deny: run.denied, Grants: run.grants, Allow: run.allowed, Base: e.Base,
	}, policy)
}

// checkedWords completes the command of check.
func checkedWords(before []string) (completionKind, []candidate) {
	if len(before) == 0 || before[len(before)-1] == "--" {
		return completePrograms, nil
	}
	return completeFiles, nil
}
