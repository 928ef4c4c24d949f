// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/approval/terminal"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// runCommand runs one program. It returns the program's exit code as an failure.ExitCode.
func runCommand(ctx context.Context, env *Env, _ *options, rest []string) error {
	var o args.Options
	words, err := syntax.ParseFlags(o.Flags(), rest)
	if o.Help && err == nil {
		if slices.Contains(rest[:len(rest)-len(words)], "--help") {
			return env.print(runHelp())
		}
		return env.print(shortRunHelp())
	}
	if err == nil {
		err = o.Check(words)
	}
	report := &report{env: env, o: &o, words: words, given: unapproved(rest)}
	if err != nil {
		return report.failed(err)
	}
	switch {
	case o.Detach:
		return detach(ctx, env, &o, words)
	case o.Server.URL != "":
		return runRemote(ctx, report, env.sessions())
	}
	return runParsed(ctx, report)
}

// runParsed runs on this machine what flags describe.
func runParsed(ctx context.Context, report *report) error {
	env, o, words := report.env, report.o, report.words
	defer o.Close()
	env.Asks = env.Asks || o.Approved != "" // there was a person
	dir, e, err := o.Settings(&env.Env)
	if report.config = e; err != nil {
		return report.failed(err)
	}
	if o.Join != "" {
		return runJoined(ctx, report, dir)
	}
	console, err := openConsole(env, o)
	if err != nil {
		return report.failed(err)
	}
	defer console.Close()
	o.AskOnTerminal(e, console.Own)
	if err := o.CheckRecord(console.Own); err != nil {
		return report.failed(err)
	}
	env.beside, report.unless, report.console = console.Beside, console.Unless, console
	cmd, policy, err := o.Build(&env.Env, dir, words)
	if err != nil {
		return report.failed(err)
	}
	report.unset()
	report.policy = policy
	report.warn(policy, cmd.Dir)
	var person approval.Approver = report.asker(dir, console)
	if o.Approved != "" {
		person = approval.Chain(approvedBy(o.Approved, report.given), person)
	}
	runner, post, err := o.Runner(&env.Env, e, policy, cmd.Dir, person)
	if err != nil {
		return report.failed(err)
	}
	defer post.Close()
	if runner.Tracer != nil { // else the variables are passed on as all others
		cmd.Trace = event.TraceContext{Parent: env.Variable("TRACEPARENT"), State: env.Variable("TRACESTATE")}
	}
	post.Failed = func(err error) {
		if o.Verbose || o.ApprovalWait > 0 || o.AskInConsole {
			report.note("questions cannot be answered from elsewhere: " + explain.OneLine(err))
		}
	}
	post.Waits = func(r *approval.Request, wait time.Duration, console bool) {
		if !o.JSONL { // its reader has the question
			report.note(explain.Waiting(r, wait, console))
		}
	}
	report.announce = post.Announce
	report.audit = args.NewAudit(o.Audit, false)
	if err := report.audit.Attach(runner, post, o.Area(e, policy, cmd.Dir)); err != nil {
		return report.failed(err)
	}
	return execute(ctx, runner, cmd, report, console)
}

// asker is who asks on the terminal.
func (r *report) asker(dir string, console *tty.Console) *terminal.Approver {
	a := &terminal.Approver{Around: console.Around, Direct: !console.Own}
	if r.dir = dir; !r.o.NoConfig {
		a.Keep = func(host string) { r.kept = append(r.kept, host) }
	}
	return a
}

// unset names variables that are to be passed on and are not there.
func (r *report) unset() {
	for _, v := range r.o.Variables {
		isSet := func(e string) bool { return strings.HasPrefix(e, v+"=") }
		if !strings.Contains(v, "=") && !slices.ContainsFunc(r.env.Environ, isSet) {
			r.note("-e " + text.Word(v) + ": not set in this environment, so the program does not get it")
		}
	}
}

// execute runs cmd, reports how it ended, and closes the Runner.
func execute(ctx context.Context, runner *sallyport.Runner, cmd *sallyport.Cmd, report *report,
	console *tty.Console) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	report.attach(runner, cmd, cancel)
	report.lineEnd = console.LineEnd()
	signals := tty.ForwardSignals(console)
	defer signals.Close(report.env.Last)
	report.connect(cmd, console, signals)
	if err := console.Begin(); err != nil {
		_ = runner.Close() // nothing has run, and the error above it says more
		return report.failed(err)
	}
	start := time.Now()
	res, err := runner.Run(ctx, cmd)
	if err == nil && res.ExitCode == explain.CodeOK {
		err = res.Err() // not all of the input reached the program, or not all of its output was written
	}
	for _, f := range []*os.File{report.env.Stdout, report.env.Stderr} {
		tty.Continue(f) // the program may have stopped what is printed now
	}
	console.Close()
	report.keepHosts()
	printed := report.result(res, err)
	if printed.Run == "" {
		printed.Run = report.id()
	}
	recorded := report.record(printed, start)
	if closed := runner.Close(); err == nil && closed != nil {
		report.note("cleanup failed: " + explain.OneLine(closed))
	}
	lost := <-recorded
	switch said := new(sallyport.AuditError); {
	case lost.failed && !errors.As(err, &said):
		err = errors.Join(lost.err, err)
		printed = report.result(res, err)
	case lost.err != nil && !lost.failed && report.o.Verbose:
		report.note("run not recorded: " + explain.OneLine(lost.err))
	}
	return report.done(res, err, printed)
}

// runHelpText is the help text of run above the flags, exitCodesHelp the one below.
const (
	runPurpose = `Run a program in the sandbox and exit as it does.

  sallyport run [FLAGS] [--] PROGRAM [ARG...]
  sallyport run [FLAGS] -c SCRIPT

  sallyport run -- go test ./...
  sallyport run --rw /srv/data --timeout 5m -c 'make && make install'
  sallyport run --grant git -- git commit -am "fix"
`
	runHelpText = runPurpose + `
By default the program can read and execute all files of this machine except
secrets in home directories, and can write to the workspace and a private /tmp.
The network is off. In the workspace, .git, .agents, .codex and .sallyport can
be neither changed nor created. Settings of agents and editors there (.claude,
.vscode, .envrc, ...) cannot be changed; new ones and new repositories are
reported at the end. Each workspace has its own private layer for writes to
toolchain caches. Flags end at the first argument that is not a flag.
`
	exitCodesHelp = `Exit codes: the program's own; 128+n killed by signal n; 121 sandbox not
available; 122 forbidden; 123 denied, or no approver; 124 timed out; 125 an
error of sallyport; 126 cannot be executed; 127 not found.
`
)

// runHelp is the help text of run.
func runHelp() string {
	return runHelpText + syntax.DescribeFlags(new(args.Options).Flags()) + "\n" + exitCodesHelp
}

// usualFlags are those of the short help.
var usualFlags = []string{"sandbox", "rw", "deny", "grant", "allow-host", "cd", "command", "env", "timeout",
	"json"}

// shortRunHelp is what -h prints: the flags that people use.
func shortRunHelp() string {
	flags := slices.DeleteFunc(new(args.Options).Flags(),
		func(f syntax.Flag) bool { return !slices.Contains(usualFlags, f.Long) })
	for i := range flags {
		flags[i].Group = ""
	}
	return runPurpose + syntax.DescribeFlags(flags) +
		"\nsallyport run --help lists all flags, sallyport grants all grants.\n"
}
