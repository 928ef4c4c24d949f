// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package args turns the words after "sallyport run", its flags and its command, with the
// settings that hold for them into a Runner and a Cmd.
//
// The network policy of a run is made of settings, flags and rules, and can be asked about a host. Settings
// come with their ceiling applied, see [config.Effective]. Rules about hosts add entries: nothing here lets
// one opening take the place of a denial.
package args

import (
	"os"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/otel"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Env is the environment that words and settings are read in. The streams are those of the
// program; nil is none.
type Env struct {
	Stdin, Stdout, Stderr *os.File
	// Environ holds the variables as "NAME=value"; nil is the empty environment.
	Environ []string
	// Proxies is that of [config.Input].
	Proxies []string
	// Dir is the current directory, absolute; relative names begin there. Empty
	// means that it no longer exists: what needs it fails.
	Dir string
	// Managed is the directory of the managed configuration; empty is for tests.
	Managed string
	// RequireSandbox is that of [config.Input].
	RequireSandbox bool
	// Asks says that a person answers questions, as on a terminal.
	Asks bool
	// Say is called with messages for people; nil drops them.
	Say func(line string)
	// Telemetry is that of this process; nil for none.
	Telemetry *otel.Process
}

func (e *Env) say(line string) {
	if e.Say != nil {
		e.Say(line)
	}
}

// Settings returns the workspace of a run, and what holds there. After an error of [Options.Directory]
// there are no settings.
func (o *Options) Settings(env *Env) (dir string, e *config.Effective, err error) {
	if dir, err = o.Directory(env); err == nil {
		e, err = o.Configure(env, dir)
	}
	return dir, e, err
}

// Build returns the command that flags and settings describe, in dir, and what it may touch.
func (o *Options) Build(env *Env, dir string, words []string) (*sallyport.Cmd, sandbox.Policy, error) {
	cmd, err := o.Command(env, dir, words)
	if err != nil {
		return nil, sandbox.Policy{}, err
	}
	policy, err := o.Policy(dir, env.Variable("HOME"))
	return cmd, policy, err
}

// Command returns the command that flags and settings describe, in dir.
func (o *Options) Command(env *Env, dir string, words []string) (*sallyport.Cmd, error) {
	tmp, err := o.tmpDir(dir, env.Variable("HOME"))
	if err != nil {
		return nil, err
	}
	made := o.Cmd
	cmd := &made
	cmd.Args, cmd.Dir, cmd.EnvPolicy, cmd.Tmp, cmd.Explain = words, dir, o.environment(env), tmp, o.Verbose
	if cmd.AskFor, err = o.asksFor(dir, env.Variable("HOME")); err != nil {
		return nil, err
	}
	if cmd.Files, err = o.files(words); err != nil {
		return nil, err
	}
	if env.Stdin != nil {
		cmd.Stdin = env.Stdin
	}
	cmd.Record, err = o.recorder(dir, env.Variable("HOME"))
	return cmd, err
}

// OwnTerminal reports whether the program gets a terminal of its own.
func (o *Options) OwnTerminal(env *Env) bool {
	switch {
	case o.TTY != nil:
		return *o.TTY
	case o.Captures():
		return false
	}
	return terminals && tty.Is(env.Stdin) && tty.Is(env.Stdout)
}

// Captures reports whether the answer is one object or lines of objects.
func (o *Options) Captures() bool { return o.JSON || o.JSONL }

// Variable returns the value of a variable of the environment; empty when it is not set.
func (e *Env) Variable(name string) string {
	for _, v := range slices.Backward(e.Environ) {
		if rest, ok := strings.CutPrefix(v, name); ok && strings.HasPrefix(rest, "=") {
			return rest[1:]
		}
	}
	return ""
}

// Unbuilt describes the sandbox that was asked for and not built.
func (o *Options) Unbuilt() event.Sandbox {
	return event.Sandbox{Mode: o.preset().Name(), Network: o.networkOf(),
		Sandbox: executor.Sandbox{Level: "none"}}
}
