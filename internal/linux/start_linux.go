// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"os"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/stage"
)

// Start starts a command at the best accepted level that this machine and the policy
// allow. The three descriptors become the command's own and stay the caller's to close.
// Start returns when the program has been executed; with an error nothing of the command
// has run.
func (h *Host) Start(ctx context.Context, spec *executor.Spec, stdio [3]*os.File) (*Child, error) {
	return h.start(ctx, nil, spec, stdio)
}

// start is Start, in a shared sandbox or with nil in one of the command's own.
func (h *Host) start(ctx context.Context, in *Shared, spec *executor.Spec,
	stdio [3]*os.File) (*Child, error) {
	levels, err := h.accepted(spec)
	if in != nil && err == nil {
		levels = levels[:1]
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && spec.Stage != nil {
		levels, err = stage.Levels(spec, levels)
	}
	var st *stage.Session
	if err == nil {
		st, err = h.joinStage(in, spec)
	}
	if err != nil {
		return nil, err
	}
	begun := false
	of := &attempt{host: h, shared: in, spec: spec, stdio: stdio, begun: &begun}
	of.stage = st
	child, err := h.startAt(ctx, of, levels)
	if err != nil {
		st.Drop(begun)
	}
	return child, err
}

// startAt starts the command of an attempt that has no level yet at the first of some levels that will do.
func (h *Host) startAt(ctx context.Context, of *attempt, levels []string) (*Child, error) {
	spec := of.spec
	var refusals []*refusal
	layerIndex := 0
	var fixed []string
	for try := 1; len(levels) > 0; try++ {
		a := h.attempt(levels[0], spec, of.stdio)
		a.shared, a.stage, a.begun, a.layerIndex, a.fixed = of.shared, of.stage, of.begun, layerIndex, fixed
		a.prefork() // the kernel makes the namespaces while this gathers and plans
		p, err := a.plan()
		if err == nil {
			err = makePoints(p.Points)
		}
		if err == nil {
			err = a.waitReady(ctx)
		}
		var child *Child
		if err == nil {
			child, err = a.launch(p)
		}
		if err == nil {
			return child, nil
		}
		a.release()
		if errors.Is(err, stage.ErrMounted) {
			continue
		}
		if errors.Is(err, errOtherLayers) {
			layerIndex++
			continue
		}
		if errors.Is(err, errFixed) && try < maxTries {
			if fixed = a.fixed; linked(fixed) && !spec.ProtectHardLinks {
				same := *spec
				same.ProtectHardLinks, spec = true, &same
			}
			continue
		}
		var no *refusal
		switch err = a.learn(err, try); {
		case errors.As(err, &no):
			refusals, levels = append(refusals, no), levels[1:]
		case !errors.Is(err, errPlanAgain):
			return nil, err
		}
	}
	return nil, h.refused(refusals, spec, of.stdio)
}
