// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
)

// FakeStages is an executor whose stages the test has made.
type FakeStages struct {
	Fake
	All    []*FakeStage
	Failed error // of Stages, beside them
}

// Stages lists them.
func (e *FakeStages) Stages(context.Context) ([]executor.StageInfo, error) {
	var all []executor.StageInfo
	for _, s := range e.All {
		all = append(all, s.Described)
	}
	return all, e.Failed
}

// OpenStage finds one as its contract says.
func (e *FakeStages) OpenStage(_ context.Context, workspace, id string) (executor.Stage, error) {
	for _, s := range slices.Backward(e.All) {
		i, here := s.Described, workspace == s.Described.Workspace ||
			strings.HasPrefix(workspace, s.Described.Workspace+"/")
		if id == "" && here || id != "" && (i.ID == id || i.Name == id && here ||
			len(id) >= 4 && strings.HasPrefix(i.ID, id)) {
			return s, nil
		}
	}
	return nil, &executor.StageError{Why: "there is none", Err: executor.ErrNoStage}
}

// A FakeStage has the changes that the test gave it.
type FakeStage struct {
	Described executor.StageInfo
	Has       []executor.Change
	Text      string // of the diff
	Err       error  // of Apply and Discard
	Options   executor.ApplyOptions
	Conflicts []executor.Conflict
	Refused   []executor.Conflict
	Discarded []string
}

// Info describes it.
func (s *FakeStage) Info() executor.StageInfo { return s.Described }

// Changes are those at and below paths, which must be absolute.
func (s *FakeStage) Changes(_ context.Context, paths ...string) ([]executor.Change, error) {
	if len(paths) == 0 {
		return s.Has, nil
	}
	var some []executor.Change
	for _, p := range paths {
		n := len(some)
		for _, c := range s.Has {
			if at := filepath.Join(c.Root, c.Path); at == p || strings.HasPrefix(at, p+"/") {
				some = append(some, c)
			}
		}
		if len(some) == n {
			return nil, &executor.StageError{Why: "the stage has no change at " + p,
				Fix: "see sallyport changes", Err: executor.ErrNoChange}
		}
	}
	return some, nil
}

// Diff writes Text.
func (s *FakeStage) Diff(ctx context.Context, w io.Writer, paths ...string) error {
	if _, err := s.Changes(ctx, paths...); err != nil {
		return err
	}
	_, err := io.WriteString(w, s.Text)
	return err
}

// Apply notes what is asked for.
func (s *FakeStage) Apply(ctx context.Context, o executor.ApplyOptions) (*executor.Applied, error) {
	s.Options = o
	some, err := s.Changes(ctx, o.Paths...)
	switch {
	case err != nil || s.Err != nil:
		return &executor.Applied{Left: len(s.Has)}, cmpErr(err, s.Err)
	case len(s.Conflicts) > 0 && !o.Force:
		return &executor.Applied{Conflicts: s.Conflicts, Left: len(s.Has)},
			&executor.ConflictError{Conflicts: s.Conflicts}
	}
	done := &executor.Applied{Conflicts: s.Conflicts, Left: len(s.Has) - len(some), Refused: s.Refused}
	for _, c := range some {
		done.Applied = append(done.Applied, c.Path)
	}
	return done, nil
}

// Discard notes what is asked for.
func (s *FakeStage) Discard(ctx context.Context, _ bool, paths ...string) error {
	if s.Err != nil {
		return s.Err
	}
	s.Discarded = append([]string{"all"}, paths...)
	_, err := s.Changes(ctx, paths...)
	return err
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
