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
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// Prepare returns what makes runs for clients of a server from the words after "sallyport run", with
// the settings that hold for them. Managed and telemetry are those of [Env], proxies are the variables of the
// server, and log is its audit log; nil keeps nothing.
func Prepare(managed string, proxies []string, log *Audit, telemetry *otel.Process) runs.Prepare {
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
		if err := o.CheckRecord(r.TTY != nil); err != nil {
			return nil, err
		}
		p, err := o.prepare(&Env{Environ: r.Environ, Proxies: append([]string{}, proxies...), Dir: r.Dir,
			Managed: managed, RequireSandbox: r.RequireSandbox, Telemetry: telemetry,
			Asks: r.Approver != nil && !r.Unattended}, r, words, log)
		if err != nil {
			return nil, explain.Classify(err) // with its exit code
		}
		return p, nil
	}
}

// callers refuses flags of the program that a run is for: a run of a client has none of them.
func (o *Options) callers() error {
	if o.RecordFile != "" {
		return explain.NewError("--record=FILE is not supported in a run of a client; leave FILE out")
	}
	if len(o.Local) == 0 {
		return nil
	}
	f := o.Local[0]
	return explain.NewError("--%s is not supported in a run of a client; %s", f.Long, f.Local)
}

// prepare makes the run of a request.
func (o *Options) prepare(env *Env, r *runs.Request, words []string,
	log *Audit) (*runs.Prepared, error) {
	dir, e, err := o.Settings(env)
	if err != nil {
		return nil, err
	}
	cmd, policy, err := o.Build(env, dir, words)
	if err == nil && r.Workdir != "" {
		if cmd.Stage == nil && r.Stage == nil { // else the stage may have it
			err = CheckPath("the working directory", r.Workdir, true)
		}
		cmd.Dir, policy = r.Workdir, policy.WithWorkspace(hostfacts.RealPath(dir))
	}
	if err != nil {
		return nil, err
	}
	person := r.Approver
	if person == nil {
		person = approval.Func(func(context.Context, *approval.Request) (approval.Decision, error) {
			return approval.Decision{}, approval.ErrPass
		})
	}
	runner, post, err := o.Runner(env, e, policy, cmd.Dir, person)
	if err != nil {
		return nil, err
	}
	if err := log.Attach(runner, post, o.Area(e, policy, cmd.Dir)); err != nil {
		post.Close()
		return nil, err
	}
	post.Failed = func(error) {} // then only the client can answer
	start := time.Now()
	return &runs.Prepared{
		Runner: runner, Cmd: cmd, Close: func() { post.Close(); o.Close() }, Announce: post.Announce,
		Questions: post.Questions(),
		Refused: func(err error) *sallyport.Result {
			if need := log.needed(log.sync()); need != nil {
				err = need
			}
			said, made := explain.Classify(forbidden(err)), sallyport.ResultOf(nil, err)
			made.ExitCode, made.End, made.Error, made.Sandbox = said.Code, said.End,
				said.String(), o.Unbuilt()
			return made
		},
		Ended: func(res *sallyport.Result) {
			res.Warnings = slices.Concat(e.Notes, res.Warnings)
			failed, err := log.Record(explain.Record{Start: start, Flags: o.Shape, Result: *res})
			switch {
			case failed:
				said := explain.Classify(err)
				res.ExitCode, res.End, res.Error = said.Code, said.End, said.String()
			case err != nil:
				res.Warnings = append(res.Warnings, "the audit log lacks this run: "+explain.OneLine(err))
			}
		},
	}, nil
}
