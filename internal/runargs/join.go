// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runargs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/failure"
	"github.com/sallyport-dev/sallyport/internal/named"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// idle takes a value of --idle.
func (o *Options) idle(v string) error {
	d, err := config.ParseDuration(v)
	if err == nil && d <= 0 {
		err = errors.New("it must be more than zero")
	}
	o.Idle = d
	return err
}

// joins reports whether a flag about named sandboxes was given.
func (o *Options) joins() bool {
	return o.Join != "" || o.Idle != 0 || slices.Contains(o.Shape, "--join")
}

// checkJoin returns what is wrong with the flags about named sandboxes.
func (o *Options) checkJoin() error {
	switch {
	case !o.joins():
		return nil
	case o.Join == "" && o.Idle != 0 && !slices.Contains(o.Shape, "--join"):
		return failure.New("--idle is for --join NAME")
	case named.CheckName(o.Join) != nil:
		return failure.New("--join: %v", named.CheckName(o.Join))
	case o.Server.URL != "":
		return failure.New("--join and --remote cannot be combined; named sandboxes are on this machine")
	case o.Detach:
		return failure.New("--join and --detach cannot be combined; let the shell run it in the background")
	case o.escalate:
		return failure.New("--join and --escalate cannot be combined; nothing runs outside of a named sandbox")
	}
	return nil
}

// Sandbox joins the sandbox of --join for a command with a policy. Program is the command line of its keeper.
func (o *Options) Sandbox(ctx context.Context, env *Env, cmd *sallyport.Cmd, policy sandbox.Policy, program []string) (*named.Joined, error) {
	r, err := o.request(ctx, cmd, policy)
	if err != nil {
		return nil, err
	}
	j, err := named.Join(ctx, r, &named.Starter{Program: program, Environ: env.Environ, Idle: cmp.Or(o.Idle, named.DefaultIdle)})
	return j, Refused(err)
}

// Refused gives the error of a run that cannot join a sandbox its exit code. Others stay as they are.
func Refused(err error) error {
	var no *named.RefusedError
	if errors.As(err, &no) {
		return failure.With(failure.CodeForbidden, sallyport.EndForbidden, no.Error(), "")
	}
	return err
}

// request says what a command asks of a named sandbox: its policy, with what it asks to be approved.
func (o *Options) request(ctx context.Context, cmd *sallyport.Cmd, policy sandbox.Policy) (*named.Request, error) {
	policy = policy.With(cmd.AskFor...)
	if policy.Network() == sandbox.NetworkProxy {
		return nil, &sandbox.UnsupportedError{Need: "a managed network in a named sandbox", Have: "this version has none", Hint: "use --net none or --net host"}
	}
	if policy.Mode() != sandbox.Managed {
		return nil, Refused(&named.RefusedError{Name: o.Join, Why: "this run builds no sandbox", Fix: "use another -s, such as workspace-write"})
	}
	places, err := new(local.Executor).Places(ctx, RealPath(cmd.Dir), cmd.EnvPolicy.Base, cmd.Tmp)
	if err != nil {
		return nil, err
	}
	r := &named.Request{Name: o.Join, Workspace: places.Dir, Policy: policy.Bind(places)}
	for _, name := range cmd.Allow {
		r.Openings = append(r.Openings, "--allow "+name)
	}
	for _, p := range cmd.Publish {
		r.Openings = append(r.Openings, fmt.Sprintf("--publish %d", p.Port))
	}
	if cmd.Tmp != "" && cmd.Tmp != "private" {
		r.Openings = append(r.Openings, "--tmp "+cmd.Tmp)
	}
	if !cmd.ProtectHardLinks {
		r.Openings = append(r.Openings, "no --protect-hard-links")
	}
	return r, nil
}
