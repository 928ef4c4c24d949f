// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/sessions"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// daemonIdle is how long the daemon of detached runs rests before it ends.
const daemonIdle = "1m"

// sessions returns the environment of verbs about sessions. Program may be missing: they do not
// start the daemon.
func (e *Env) sessions(program ...string) *sessions.Env {
	return &sessions.Env{Env: &e.Env, Program: program, Print: e.print, PrintJSON: e.printJSON, Tell: e.say}
}

// sessionCommands are the verbs about sessions.
func sessionCommands() []command {
	var all []command
	for _, v := range sessions.Verbs() {
		c := command{name: v.Name, short: v.Short, help: v.Help, words: v.Words}
		c.flags = func(o *options) []syntax.Flag { return v.Flags(&o.sessions) }
		c.run = func(ctx context.Context, env *Env, o *options, words []string) error {
			return v.Run(ctx, env.sessions(), &o.sessions, words)
		}
		if v.Words > 0 {
			c.offer = func(before []string) (syntax.FlagKind, []candidate) {
				return v.Offer(System().sessions(), before)
			}
		}
		all = append(all, c)
	}
	return all
}

// detach starts a run that goes on as a session.
func detach(ctx context.Context, env *Env, o *args.Options, words []string) error {
	daemon, err := env.withDaemon()
	if err != nil {
		return err
	}
	return sessions.Detach(ctx, daemon, o, words)
}

// withDaemon returns the environment of verbs that start the daemon.
func (e *Env) withDaemon() (*sessions.Env, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, explain.NewError("cannot find sallyport's own executable: %v", err)
	}
	return e.sessions(program, "exec-server", "--idle", daemonIdle), nil
}

// runJoined runs a program of dir in a named sandbox.
func runJoined(ctx context.Context, report *report, dir string) error {
	daemon, err := report.env.withDaemon()
	if err == nil {
		report.policy, err = report.o.Policy(dir, report.env.Variable("HOME"))
	}
	if err != nil {
		return report.failed(err)
	}
	report.unset()
	report.warn(report.policy, dir)
	return runRemote(ctx, report, daemon)
}

// runRemote runs a program on another machine, or in the daemon, and reports what its server tells.
func runRemote(ctx context.Context, report *report, server *sessions.Env) error {
	env := report.env
	var event func(json.RawMessage) error
	var unprinted error // an event that could not be
	if report.o.JSONL {
		event = func(e json.RawMessage) error {
			unprinted = env.write(string(e) + "\n")
			return unprinted
		}
	}
	text, err := sessions.Remote(ctx, server, report.o, report.words, event)
	var done explain.ExitCode
	var by explain.SignalExit
	switch {
	case unprinted != nil: // nor could a result be
		return unprinted
	case errors.As(err, &done):
		return done
	case errors.As(err, &by):
		return by
	case err != nil && text == nil:
		return report.failed(err)
	case text == nil: // it was left there
		return nil
	}
	res := new(sallyport.Result)
	if err := json.Unmarshal(text, res); err != nil {
		return report.failed(explain.NewError("the server sent an invalid result: %v", err))
	}
	var said error
	sessions.Lost(res)
	switch {
	case err != nil: // not all of its output has come
		said = err
		res.ExitCode, res.Error = explain.Classify(err).Code, explain.OneLine(err)
	case res.Error != "":
		text, fix := explain.Unasked(explain.OneLine(errors.New(res.Error)), res.Rule)
		said = explain.ErrorWith(res.ExitCode, res.End, text, fix)
	}
	return report.done(res, said, res)
}
