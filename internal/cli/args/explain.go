// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"cmp"
	"context"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/rules"
)

// Explain explains the run that flags and settings describe. It closes o. Nothing runs.
func (o *Options) Explain(ctx context.Context, env *Env, q explain.Question,
	e *config.Effective) (*explain.Explanation, error) {
	defer o.Close()
	if err := o.Check(q.Command); err != nil {
		return nil, err
	}
	cmd, policy, err := o.Build(env, q.Host.Dir, q.Command)
	if err != nil {
		return nil, err
	}
	o.Beside = q.Read()
	r, post, err := o.Runner(env, e, policy, cmd.Dir, nil)
	if err != nil {
		return nil, err
	}
	defer post.Close()
	q.Site = o.Site(env, e, policy, cmd.Dir)
	x, err := explain.ExplainRun(ctx, r, cmd, q, explain.Sandbox{
		Mode: policy.Name(), Network: policy.Network().String(), Level: cmp.Or(o.Cmd.Level, "bwrap"),
		Write: o.Writable, Read: o.Readable, Deny: o.Denied, Grants: o.Grants,
		Allow: o.Cmd.Allow, Base: e.Base,
	})
	if err != nil {
		return nil, err
	}
	return x, r.Close()
}

// ExplainRequest explains the run that a client asks for, as [Prepare] would make it with the same managed
// directory and proxies, where a person answers questions.
func ExplainRequest(ctx context.Context, managed string, proxies []string,
	r *runs.Request) (*explain.Explanation, error) {
	var o Options
	words, err := syntax.ParseFlags(o.Flags(), r.Args)
	if err == nil {
		err = o.callers()
	}
	if err != nil {
		return nil, err
	}
	env := &Env{Environ: r.Environ, Proxies: append([]string{}, proxies...), Dir: r.Dir, Managed: managed,
		Asks: true}
	dir, e, err := o.Settings(env)
	if err != nil {
		return nil, err
	}
	return o.Explain(ctx, env, explain.Question{Command: words, Layers: e.Rules(),
		Host: rules.Host{Dir: cmp.Or(r.Workdir, dir), Home: env.Variable("HOME")}}, e)
}
