// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/stage"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// joinStage returns the stage of a command that is to start, in a shared sandbox or with nil in one of its
// own; nil for a command that has none.
func (h *Host) joinStage(in *Shared, spec *executor.Spec) (*stage.Session, error) {
	if spec.Stage == nil {
		return nil, nil
	}
	own, err := h.onDisk()
	if err != nil {
		return nil, err
	}
	st := new(stage.Session)
	if in != nil {
		st = &in.stage
	}
	return st, st.Join(own.state, spec)
}

// addStage adds the stage to a request that is complete but for that.
func (a *attempt) addStage(r *plan.Request) error {
	if a.stage == nil {
		return nil
	}
	own, err := a.host.onDisk()
	if err != nil {
		return err
	}
	table, _ := own.mounts.Table() // without it the kernel says what it refuses
	return a.stage.Add(r, table, a.begun)
}

// Stages implements [executor.Stager].
func (h *Host) Stages(ctx context.Context) ([]executor.StageInfo, error) { return stage.All(ctx) }

// OpenStage implements [executor.Stager].
func (h *Host) OpenStage(ctx context.Context, workspace, id string) (executor.Stage, error) {
	return stage.Find(ctx, h.judge, workspace, id)
}

// judge returns what says why a policy closes a path.
func (h *Host) judge(p *stage.Policy) (func(sandbox.Access) error, error) {
	policy, err := p.Sandbox()
	if err != nil {
		return nil, err
	}
	tmp := p.Tmp
	if filepath.IsAbs(tmp) { // what is at /tmp is written where it is
		policy, tmp = policy.With(sandbox.Grant{Path: filepath.Clean(tmp), Level: sandbox.LevelWrite}), ""
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	a := h.attempt(plan.LevelNative, &executor.Spec{Args: []string{"/"}, Dir: p.Dir, Policy: policy, Tmp: tmp,
		NoCaches: true}, [3]*os.File{null, null, null})
	a.dry = true
	defer a.release()
	r := &plan.Request{Level: a.level, Spec: a.spec, Program: "/"}
	if err := a.gather(r); err != nil {
		return nil, err
	}
	return a.closes, nil
}
