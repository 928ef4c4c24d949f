// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/front"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/tty"
)

// runCommand runs one program. It returns the program's exit code as an exitCode.
func runCommand(ctx context.Context, env *Env, _ *options, args []string) error {
	var o runOptions
	words, err := parse(runFlags(&o), args)
	if o.help && err == nil {
		return env.print(runHelp())
	}
	if err == nil {
		err = o.check(words)
	}
	report := &report{env: env, o: &o, words: words}
	if err != nil {
		return report.failed(err)
	}
	dir, err := o.directory(env)
	if err == nil {
		report.config, err = o.configure(env, dir)
	}
	if err != nil {
		return report.failed(err)
	}
	console, err := o.console(env)
	if err != nil {
		return report.failed(err)
	}
	defer console.Close()
	cmd, err := o.command(env, dir, words)
	if err != nil {
		return report.failed(err)
	}
	policy, err := o.policy(cmd.Dir, env.variable("HOME"))
	if err != nil {
		return report.failed(err)
	}
	for _, v := range o.variables {
		isSet := func(e string) bool { return strings.HasPrefix(e, v+"=") }
		if !strings.Contains(v, "=") && !slices.ContainsFunc(env.Environ, isSet) {
			report.note("-e " + printable.Word(v) + ": not set in this environment, so the program does not get it")
		}
	}
	report.policy = policy
	report.warn(policy, cmd.Dir)
	runner, post := o.runner(env, report.config, policy, cmd.Dir, console)
	defer post.Close()
	post.Failed = func(err error) {
		if o.verbose || o.approvalWait > 0 {
			report.note("questions cannot be answered from elsewhere: " + oneLine(err))
		}
	}
	report.announce = post.Announce
	return execute(ctx, runner, cmd, report, console)
}

// execute runs cmd, reports how it ended, and closes the Runner.
func execute(ctx context.Context, runner *sallyport.Runner, cmd *sallyport.Cmd, report *report, console *front.Console) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	report.attach(runner, cmd, cancel)
	report.lineEnd = console.LineEnd()
	signals := front.Forward(console)
	defer signals.Close(report.env.Last)
	report.connect(cmd, console, signals)
	if err := console.Begin(); err != nil {
		_ = runner.Close() // nothing has run, and the error above it says more
		return report.failed(err)
	}
	start := time.Now()
	res, err := runner.Run(ctx, cmd)
	for _, f := range []*os.File{report.env.Stdout, report.env.Stderr} {
		tty.Continue(f) // the program may have stopped what is printed now
	}
	console.Close()
	printed := report.result(res, err)
	if printed.Run == "" {
		printed.Run = report.id()
	}
	recorded := report.record(printed, start)
	if closed := runner.Close(); err == nil && closed != nil {
		report.note("cleanup failed: " + oneLine(closed))
	}
	if err := <-recorded; err != nil && report.o.verbose {
		report.note("run not recorded: " + oneLine(err))
	}
	return report.done(res, err, printed)
}

// command returns the command that flags and settings describe, in dir.
func (o *runOptions) command(env *Env, dir string, words []string) (*sallyport.Cmd, error) {
	tmp, err := o.tmpDir(dir, env.variable("HOME"))
	if err != nil {
		return nil, err
	}
	cmd := &sallyport.Cmd{
		Args: words, Script: o.script, Shell: o.shell, Login: o.login,
		Dir: dir, Env: env.Environ, EnvPolicy: o.environment(env),
		Timeout: o.timeout, Grace: o.grace, Retention: sallyport.Retention{Bytes: int(o.maxOutput)},
		Allow: o.allowed, Level: o.level, Tmp: tmp, NoCaches: o.noCaches, NoObserver: o.noObserver,
		ProtectHardLinks: o.protectHardLinks, OwnershipErrors: o.ownership == ownershipError, Explain: o.verbose,
		Resources: o.resources, Unsandboxed: o.escalate, Justification: o.justification, PrefixRule: o.prefixRule,
	}
	if cmd.AskFor, err = o.asksFor(dir, env.variable("HOME")); err != nil {
		return nil, err
	}
	if cmd.Files, err = o.files(words); err != nil {
		return nil, err
	}
	// Zero would be the default, and nil the environment of this process.
	if o.hasMaxOutput && o.maxOutput == 0 {
		cmd.Retention.Bytes = -1
	}
	if o.hasGrace && o.grace == 0 {
		cmd.Grace = -1
	}
	if env.Environ == nil {
		cmd.Env = []string{}
	}
	if env.Stdin != nil {
		cmd.Stdin = env.Stdin
	}
	return cmd, nil
}
