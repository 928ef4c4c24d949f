// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"context"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/otel"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// Prepare returns what makes runs for clients of a server from the words after "sallyport run", with
// the settings that hold for them. Managed and telemetry are those of [Env], and proxies are the variables of
// the server.
func Prepare(managed string, proxies []string, telemetry *otel.Process) runs.Prepare {
	return func(_ context.Context, r *runs.Request) (*runs.Prepared, error) {
		var o Options
		words, err := syntax.ParseFlags(o.Flags(), r.Args)
		if err == nil {
			err = o.callers()
		}
		o.Cmd.Patch = r.Patch
		if err == nil {
			err = o.Check(words)
		}
		if err != nil {
			return nil, err
		}
		if r.Named != nil {
			o.Shape = append(o.Shape, "--join", r.Named.Name)
		}
		p, err := o.prepare(&Env{Environ: r.Environ, Proxies: append([]string{}, proxies...), Dir: r.Dir,
			Managed: managed, Telemetry: telemetry, Asks: r.Approver != nil && !r.Unattended}, r.Approver,
			r.Workdir, words)
		if err != nil {
			return nil, explain.Classify(err) // with its exit code
		}
		return p, nil
	}
}

// callers refuses flags of the program that a run is for: a run of a client has none of them.
func (o *Options) callers() error {
	if len(o.Local) == 0 {
		return nil
	}
	f := o.Local[0]
	return explain.NewError("--%s is not supported in a run of a client; %s", f.Long, f.Local)
}

// prepare makes the run. Person may be nil, and workdir empty.
func (o *Options) prepare(env *Env, person approval.Approver, workdir string,
	words []string) (*runs.Prepared, error) {
	dir, e, err := o.Settings(env)
	if err != nil {
		return nil, err
	}
	cmd, policy, err := o.Build(env, dir, words)
	if err == nil && workdir != "" {
		err = CheckPath("the working directory", workdir, true)
		cmd.Dir, policy = workdir, policy.WithWorkspace(hostfacts.RealPath(dir))
	}
	if err != nil {
		return nil, err
	}
	if person == nil {
		person = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
			return approval.Decision{}, approval.ErrPass
		})
	}
	runner, post, err := o.Runner(env, e, policy, cmd.Dir, person)
	if err != nil {
		return nil, err
	}
	post.Failed = func(error) {} // then only the client can answer
	start := time.Now()
	return &runs.Prepared{
		Runner: runner, Cmd: cmd, Close: func() { post.Close(); o.Close() }, Announce: post.Announce,
		Questions: post.Questions(),
		Refused: func(err error) *sallyport.Result {
			said, made := explain.Classify(forbidden(err)), sallyport.ResultOf(nil, err)
			made.ExitCode, made.End, made.Error, made.Sandbox = said.Code, said.End,
				said.String(), o.Unbuilt()
			return made
		},
		Ended: func(res *sallyport.Result) {
			res.Warnings = slices.Concat(e.Notes, res.Warnings)
			if dir, err := dirs.Dir(); err == nil {
				// as of other runs, a record that cannot be written is no failure
				_ = explain.AppendRecord(dir, explain.Record{Start: start, Flags: o.Shape, Result: *res})
			}
		},
	}, nil
}
