// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/approval/terminal"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Detach starts a run that goes on without this process, and prints its ID. Run are its flags, and words
// its command. What does not run is reported, and exited for, as by a run in front of the user; questions
// are asked on the terminal.
func Detach(ctx context.Context, env *Env, run *args.Options, words []string) error {
	params, err := started(env, run, words)
	if err != nil {
		return err
	}
	o := &Options{target: run.Server}
	opts := wire.ClientOptions{Approvals: true, OnRequest: wire.AnswerApproval(&terminal.Approver{})}
	if run.Server.URL == "" {
		opts.Resume = -1 // what has ended with the daemon does not come back
	}
	c, err := o.connect(ctx, env, true, opts)
	if err != nil {
		return explained(err, "")
	}
	defer c.Close() //nolint:errcheck // the answer was read
	id, result, err := start(ctx, c, params)
	if err != nil {
		return err
	}
	if id == "" {
		return leave(env, result, run.Quiet)
	}
	return env.Print(id + "\n")
}

// started returns the parameters of run/start. On another machine its own settings, directory and
// variables count.
func started(env *Env, run *args.Options, words []string) (*wire.RunStart, error) {
	words = run.Words(words)
	params := &wire.RunStart{Args: words, Trace: wire.Trace(event.TraceContext{
		Parent: env.Variable("TRACEPARENT"), State: env.Variable("TRACESTATE")}.Valid())}
	if run.Server.URL == "" {
		if env.Dir == "" {
			return nil, explain.NewError("the current directory no longer exists; change to another one")
		}
		params.Dir, params.Env = env.Dir, variables(env)
	}
	for _, word := range append([]string{params.Dir}, words...) { // other bytes would arrive as others
		if !utf8.ValidString(word) {
			return nil, explain.NewError("%s is not UTF-8, which the server needs", text.Word(word))
		}
	}
	params.Hidden = secrets(env, &run.Server)
	if !run.OwnTerminal(env.Env) || run.TTY == nil && !tty.Foreground(env.Stdin) {
		params.OpenStdin = run.Interactive
		return params, nil
	}
	size := tty.SizeOf(env.Stdin)
	if size.Cols == 0 || size.Rows == 0 {
		size.Cols, size.Rows = 80, 24
	}
	params.TTY, params.Screen = &wire.RunSize{Cols: size.Cols, Rows: size.Rows}, true
	return params, nil
}

// start starts a run and returns its ID, or the result of a command that does not run.
func start(ctx context.Context, c client,
	params *wire.RunStart) (id string, result json.RawMessage, err error) {
	id, result, err = wire.StartRun(ctx, c, params)
	if err != nil || id == "" {
		return "", result, explained(err, "")
	}
	return id, nil, checkID(id)
}

// variables returns the environment by name, without what no message carries.
func variables(env *Env) map[string]string {
	out := make(map[string]string, len(env.Environ))
	for _, e := range env.Environ {
		switch name, value, ok := strings.Cut(e, "="); {
		case !ok || name == "":
		case !utf8.ValidString(e):
			env.Tell("the variable " + text.Word(name) + " is not UTF-8, so the program does not get it")
		default:
			out[name] = value
		}
	}
	return out
}
