// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of sallyport: words in, exit code out.
//
// Flow: [Main] finds the command in a table, reads its flags and calls its function,
// which has a file of its own. An error becomes one line on standard error and an exit
// code; standard output belongs to the program that is run, and to commands that print
// an answer.
//
// The package decides nothing about permissions: it turns flags into a policy
// and a [sallyport.Cmd], and the Runner's result into text. It refuses flags that it
// does not support yet, because a limit or a wall that was silently left out would be a
// weaker run than the one that was asked for.
//
// It has a flag parser of its own: a command line library costs a third of a
// millisecond at every start, through its imports alone.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/audits"
	"github.com/sallyport-dev/sallyport/internal/cli/consoles"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/fleets"
	"github.com/sallyport-dev/sallyport/internal/cli/otel"
	"github.com/sallyport-dev/sallyport/internal/cli/sessions"
	"github.com/sallyport-dev/sallyport/internal/cli/stages"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Env is the environment of one invocation. The streams must be set.
type Env struct {
	args.Env
	// Name is what this program was called by, as the first word of its command line. Empty means
	// sallyport.
	Name string
	// Last says that this process ends with the invocation, so that there is no
	// need to clean up what ends with a process. False is for tests.
	Last bool

	unsaid atomic.Bool // a message could not be written
	// beside has a message printed where it is not over a question; nil prints it now.
	beside func(print func())
}

// System returns the Env of this process. Dir is empty where the current
// directory cannot be named, for example because it was removed.
func System() *Env {
	tty.KeepClosed()
	tty.KeepSignals()
	dir, _ := os.Getwd() // empty after an error
	in := args.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir,
		Managed: config.System}
	in.Telemetry = &otel.Process{Environ: in.Environ}
	return &Env{Env: in, Name: os.Args[0], Last: true}
}

// say writes a message for people to standard error. It ends each line itself: a message
// has words of others in it, and nothing in them moves a terminal or adds a line.
func (e *Env) say(lines ...string) {
	s := "sallyport: "
	for _, l := range lines {
		s += text.Line(l) + "\n"
	}
	out := func() {
		if _, err := io.WriteString(e.Stderr, s); err != nil {
			e.unsaid.Store(true) // there is no other place to report it
		}
	}
	if e.beside == nil {
		out()
	} else {
		e.beside(out)
	}
}

// print writes for people to standard output, in one write, and lets nothing through that
// moves a terminal. Text that has words of others in it keeps them on their lines by
// [text.Word] and its like. A reader that has gone away is an error and does not end
// this process.
func (e *Env) print(s string) error { return e.write(text.Lines(s)) }

// write is print for text that a program reads, as it is.
func (e *Env) write(text string) error {
	return e.printing(func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// printJSON prints one JSON object.
func (e *Env) printJSON(v any) error {
	return e.printing(func(w io.Writer) error { return encodeTo(w, v) })
}

// printing lets write print to standard output. An answer is the last thing that an invocation
// does: it starts no process afterwards.
func (e *Env) printing(write func(io.Writer) error) error {
	if e.Last {
		// The write fails with EPIPE instead. To be notified would need a thread.
		signal.Ignore(syscall.SIGPIPE)
	}
	if err := write(e.Stdout); err != nil {
		return explain.CannotWrite(err)
	}
	return nil
}

// answer prints v as one JSON object or for people. It returns exit code 1 if not ok.
func (e *Env) answer(v fmt.Stringer, asJSON, ok bool) error {
	var err error
	if asJSON {
		err = e.printJSON(v)
	} else {
		err = e.print(v.String())
	}
	if err != nil || ok {
		return err
	}
	return explain.ExitCode(explain.CodeNo)
}

// A command is one word after the program's name.
type command struct {
	name  string
	short string // one line of the overview; empty hides the command
	help  string // above the flags
	words int    // how many words it takes at most; flags end at the first if it is aCommand
	// flags are those of the command, bound to o. Nil is for run, which reads its own.
	flags func(o *options) []syntax.Flag
	run   func(ctx context.Context, env *Env, o *options, words []string) error
	// offer lists what completes a word after those before it; nil lists nothing.
	offer func(before []string) (syntax.FlagKind, []candidate)
	// flagsAfter are the flags that stand behind words; nil means those of flags.
	flagsAfter func(before []string) []syntax.Flag
	// misused is the exit code for words that are not valid; 0 means that of an error.
	misused int
}

// aCommand is the number of words of a command that takes another program's.
const aCommand = -1

// options are the flags of all commands but run.
type options struct {
	json, list, clean, all, verbose, man, help, noConfig, resolve, explain, origin, revoke, user,
	session, rule bool
	path string

	rules []string
	given []string // of hook: the words after its own, as they are
	after []string // those of all words that stand behind "--"; nil where there is none

	script, dir, config, message, method, mode string
	metrics                                    string // the address for Prometheus; empty for none

	serve    listen.Options // of exec-server
	install  installing
	sessions sessions.Options
	stages   stages.Options
	mcp      mcpOptions
	audit    audits.Options
	console  consoles.Options
	fleet    fleets.Options

	run     args.Options // of check, mcp and net
	runFlag string       // one of run that was given to check
}

// commands returns the table, in the order of the overview.
func commands() []command {
	run := command{name: "run", short: "run a program in the sandbox", run: runCommand}
	return slices.Concat([]command{run}, sessionCommands(), stageCommands(), []command{
		{name: "why", short: "explain what the last run was denied and what would allow it", help: whyHelp, words: 1, flags: whyFlags, run: whyCommand, offer: recordedRuns},
		{name: "console", short: "serve a web page: questions, sessions, runs, changes", help: consoles.Help,
			flags: consoleFlags, run: consoleCommand},
		{name: "audit", short: "check, show and export the audit log", help: audits.Help, words: 2,
			flags: auditFlags, run: auditCommand, offer: audits.Words},
		{name: "check", short: "show what the rules say about a command", help: checkHelp, words: aCommand, flags: checkFlags, run: checkCommand, offer: checkedWords},
		{name: "patch", short: "apply a patch as models write it, as a whole or not at all", help: patchHelp, words: 1, flags: patchFlags, run: patchCommand, offer: patchWords},
		{name: "net", short: "show what the network policy says about a host", help: netHelp, words: 2, flags: netFlags, run: netCommand, offer: netWords},
		{name: "init", short: "write commented settings for the project", help: initHelp, flags: initFlags, run: initCommand},
		{name: "trust", short: "show a project's settings and ask whether to trust them", help: trustHelp, words: 1, flags: trustFlags, run: trustCommand, offer: directories},
		{name: "config", short: "show, change, explain and check the configuration", help: configHelp, words: 2, flags: configFlags, run: configCommand, offer: configWords},
		{name: "approvals", short: "list open questions and remembered approvals", help: approvalsHelp, words: 2, flags: approvalsFlags, run: approvalsCommand, offer: approvalWords},
		{name: "approve", short: "approve an open question of a running process", help: approveHelp, words: 1, flags: approveFlags, run: answering(approval.Approved), offer: openIDs},
		{name: "deny", short: "deny an open question of a running process", help: denyHelp, words: 1, flags: denyFlags, run: answering(approval.Denied), offer: openIDs},
		{name: "hook", short: "answer the hook of an agent that is about to run a command",
			help: hookHelp, words: aCommand, flags: hookFlags, run: hookCommand, offer: hookWords,
			flagsAfter: flagsOfHook, misused: codeBlock},
		{name: "setup", short: "put sallyport under an agent: MCP server and hook", help: setupHelp, words: 1,
			flags: setupFlags, run: setupCommand, offer: setupWords},
		{name: "exec-server", short: "run processes for a client on this or another machine", help: execServerHelp, flags: execServerFlags, run: execServerCommand},
		fleetCommand(),
		{name: "mcp", short: "serve sandboxed commands to an agent (MCP)", help: mcpHelp, flags: mcpFlags,
			run: mcpCommand, offer: installWords},
		{name: "grants", short: "list the names that run --grant takes", help: grantsHelp,
			flags: grantsFlags, run: grantsCommand},
		{name: "doctor", short: "check what this machine can enforce and how to fix what is missing", help: doctorHelp, flags: doctorFlags, run: doctorCommand},
		{name: "caches", short: "list or clear what programs wrote to toolchain caches", help: cachesHelp, words: 2, flags: cachesFlags, run: cachesCommand, offer: cacheWords},
		{name: "sandboxes", short: "list or stop named sandboxes (run --join)", help: sandboxesHelp, words: manyNames, flags: sandboxesFlags, run: sandboxesCommand, offer: sandboxWords},
		{name: "version", short: "print the version", help: versionHelp, flags: versionFlags, run: versionCommand},
		{name: "completion", short: "print a completion script for a shell", help: completionHelp, words: 1, flags: noFlags, run: completionCommand, offer: shellNames},
		{name: "help", short: "show the help of a command", help: helpHelp, words: 2, flags: helpFlags, run: helpCommand, offer: commandNames},
		{name: completeName, run: completeCommand},
		{name: fileHelperName, run: fileHelperCommand},
	})
}

func noFlags(*options) []syntax.Flag { return nil }

func (o *options) jsonFlag() syntax.Flag {
	return syntax.Flag{Long: "json", Set: syntax.SetOn(&o.json), Help: "print one JSON object"}
}

// allFlags are the flags of a command, with the one that all have.
func (c *command) allFlags(o *options) []syntax.Flag {
	return append(c.flags(o), syntax.Flag{Long: "help", Short: 'h', Set: syntax.SetOn(&o.help),
		Help: "print this text"})
}

// usage is the help text of a command.
func (c *command) usage() string {
	if c.flags == nil {
		return runHelp()
	}
	return c.help + syntax.DescribeFlags(c.allFlags(new(options)))
}

// invoke reads the flags of a command and performs it.
func (c *command) invoke(ctx context.Context, env *Env, args []string) error {
	if c.flags == nil {
		return c.run(ctx, env, nil, args)
	}
	var o options
	var words []string
	var err error
	if c.words == aCommand {
		words, err = syntax.ParseFlags(c.allFlags(&o), args)
	} else {
		words, o.after, err = syntax.ParseFlagsAround(c.allFlags(&o), args)
		words = append(words, o.after...)
	}
	switch {
	case err != nil && c.misused != 0:
		return explain.ErrorWith(c.misused, sallyport.EndFailed, explain.OneLine(err), "")
	case err != nil:
		return err
	case o.help:
		return env.print(c.usage())
	case len(words) > c.words && c.words != aCommand:
		return explain.NewError("unexpected argument %s; see sallyport help %s",
			syntax.QuoteFlag(words[c.words]), c.name)
	}
	return c.run(ctx, env, &o, words)
}

// meant are commands of other tools, with ours.
var meant = map[string]string{"exec": "run", "shell": "run", "start": "run", "sandbox": "run", "list": "ps",
	"stop": "kill", "remove": "rm", "permissions": "grants", "diff": "changes", "undo": "discard"}

// findCommand returns the command with a name that people may use. A name that is near none
// of them is taken for a program that was to be run.
func findCommand(name string) (*command, error) {
	var known []string
	for _, c := range commands() {
		if c.name == name {
			return &c, nil
		}
		if c.short != "" {
			known = append(known, c.name)
		}
	}
	if ours := meant[name]; ours != "" {
		return nil, explain.NewError("unknown command %s; did you mean %q?", syntax.QuoteFlag(name), ours)
	}
	return nil, explain.NewError("unknown command %s%s", syntax.QuoteFlag(name),
		syntax.NearestClause(name, known, "to run a program: "+explain.ToRun(name)))
}

// Main does what args (without the program's name) ask for and returns the exit code. Where a signal
// ended a program, this process ends by that signal, as a shell expects that has to end a loop then; else
// the code is that of the signal. It blocks until a program that it runs has ended with everything that
// the program has started.
func Main(args []string, env *Env) int {
	env.Say = func(line string) { env.say(line) }
	if env.Telemetry != nil {
		env.Telemetry.Say = env.Say
	}
	err := dispatch(context.Background(), env, args)
	ctx, cancel := context.WithTimeout(context.Background(), otel.CloseTime)
	defer cancel()
	env.Telemetry.Close(ctx)
	var done explain.ExitCode
	var by explain.SignalExit
	if errors.As(err, &by) {
		if env.Last {
			tty.Die(syscall.Signal(by))
		}
		return by.Code()
	}
	if err == nil || errors.As(err, &done) {
		if done == explain.CodeOK && env.unsaid.Load() {
			return explain.CodeFailed
		}
		return int(done)
	}
	e := explain.Classify(err)
	env.say(e.String())
	return e.Code
}

func dispatch(ctx context.Context, env *Env, args []string) error {
	if env.isShell() {
		return shellCommand(ctx, env, args)
	}
	if len(args) == 0 {
		return explain.NewError("no command given; try sallyport run -- PROGRAM, or sallyport help")
	}
	name := args[0]
	switch name {
	case "-h", "--help":
		name = "help"
	case "-V", "--version":
		name = "version"
	}
	if strings.HasPrefix(name, "-") {
		return explain.NewError("unknown flag %s; flags follow the command: sallyport run %s ...",
			text.Word(name), explain.ShellWord(name))
	}
	if c := subcommand(args); c != nil {
		return c.invoke(ctx, env, args[2:])
	}
	c, err := findCommand(name)
	if err != nil {
		return err
	}
	return c.invoke(ctx, env, args[1:])
}
