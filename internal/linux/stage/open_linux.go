// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/apply"
	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// stores returns the stages in all state directories of the user that exist.
func stores() (out []Store) {
	for _, dir := range dirs.Existing() {
		out = append(out, Store{State: dir})
	}
	return out
}

// A Judge returns what says why a policy closes a path; nil is that it does not.
type Judge func(p *Policy) (func(sandbox.Access) error, error)

// All implements the method Stages of [executor.Stager].
func All(ctx context.Context) ([]executor.StageInfo, error) {
	var out []executor.StageInfo
	var failed error
	for _, store := range stores() {
		all, err := store.List()
		failed = errors.Join(failed, err)
		for _, st := range all {
			info, err := describe(ctx, st)
			if !info.Moved {
				failed = errors.Join(failed, err)
			}
			out = append(out, info)
		}
	}
	slices.SortStableFunc(out, func(a, b executor.StageInfo) int { return a.Created.Compare(b.Created) })
	return out, failed
}

// info describes a stage but for its changes.
func (st *Stage) info() executor.StageInfo {
	return executor.StageInfo{ID: st.ID, Name: st.Name, Owner: st.Owner, Workspace: st.Workspace,
		Commands: st.Commands, Bytes: st.Bytes(), Created: st.Time()}
}

// describe describes a stage, with 0 changes beside an error.
func describe(ctx context.Context, st *Stage) (executor.StageInfo, error) {
	info := st.info()
	entries, _, err := read(ctx, st, nil)
	info.Changes, info.Moved = len(only(entries)), errors.Is(err, apply.ErrMoved)
	return info, err
}

// check returns why a root is not there any more, or is another directory.
func (st *Stage) check() error {
	for i := range st.Roots {
		if err := apply.CheckRoot(st.ID, st.Roots[i].Host(), st.Roots[i].ID); err != nil {
			return err
		}
	}
	return nil
}

// read reads the changes at and below absolute paths.
func read(ctx context.Context, st *Stage, paths []string) ([]changes.Entry, []changes.Layer, error) {
	if err := st.check(); err != nil {
		return nil, nil, err
	}
	all, base, err := st.Changes()
	var entries []changes.Entry
	if err == nil {
		entries, err = changes.Read(ctx, all, base)
	}
	if err == nil {
		entries, err = changes.Select(entries, paths)
	}
	return entries, all, err
}

// only returns the changes among entries.
func only(entries []changes.Entry) []executor.Change {
	out := []executor.Change{}
	for i := range entries {
		if !entries[i].Way {
			out = append(out, entries[i].Change)
		}
	}
	return out
}

// Find implements the method OpenStage of [executor.Stager]. What is applied is judged by judge.
func Find(ctx context.Context, judge Judge, workspace, id string) (executor.Stage, error) {
	err := strict.CheckContext(ctx)
	if err != nil {
		return nil, err
	}
	err = &executor.StageError{Why: "there are no stages yet", Err: executor.ErrNoStage,
		Fix: "run a command with --stage"}
	for _, store := range stores() {
		var st *Stage
		if st, err = store.Open(workspace, id); err == nil {
			return &openedStage{judge: judge, store: store, id: st.ID, workspace: st.Workspace,
				record: st}, nil
		}
		if st == nil && validID(id) && !errors.Is(err, executor.ErrNoStage) { // it can be discarded
			return &openedStage{judge: judge, store: store, id: id, workspace: workspace}, nil
		}
		if !errors.Is(err, executor.ErrNoStage) {
			break
		}
	}
	return nil, err
}

// An openedStage implements [executor.Stage]: each call reads the stage anew.
type openedStage struct {
	judge         Judge
	store         Store
	id, workspace string
	record        *Stage // as it was when it was opened; nil if it cannot be read

	mu   sync.Mutex          // guards info
	info *executor.StageInfo // nil before it is needed
}

// Info implements [executor.Stage].
func (s *openedStage) Info() executor.StageInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.info == nil {
		info := executor.StageInfo{ID: s.id, Workspace: s.workspace}
		if s.record != nil {
			info, _ = describe(context.Background(), s.record) // who asks for changes is told why
		}
		s.info = &info
	}
	return *s.info
}

// listed notes how many changes the stage has, so that Info need not read it once more.
func (s *openedStage) listed(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.info == nil && s.record != nil {
		info := s.record.info()
		info.Changes = n
		s.info = &info
	}
}

// paths makes paths absolute.
func (s *openedStage) paths(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		if out[i] = filepath.Clean(name); !filepath.IsAbs(name) {
			out[i] = filepath.Join(s.workspace, name)
		}
		// links on the way are the user's, and the last name is what was changed
		out[i] = filepath.Join(hostfacts.Deepest(filepath.Dir(out[i])), filepath.Base(out[i]))
	}
	return out
}

// Changes implements [executor.Stage].
func (s *openedStage) Changes(ctx context.Context, paths ...string) ([]executor.Change, error) {
	entries, _, err := s.read(ctx, paths)
	out := only(entries)
	if err == nil && len(paths) == 0 {
		s.listed(len(out))
	}
	return out, err
}

// Diff implements [executor.Stage].
func (s *openedStage) Diff(ctx context.Context, w io.Writer, paths ...string) error {
	entries, all, err := s.read(ctx, paths)
	if err != nil {
		return err
	}
	return changes.Diff(ctx, w, entries, all, s.workspace)
}

func (s *openedStage) read(ctx context.Context, paths []string) ([]changes.Entry, []changes.Layer, error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, nil, err
	}
	st, err := s.store.Open(s.workspace, s.id)
	if err != nil {
		return nil, nil, err
	}
	if kib, ok := unwritten(); ok && kib <= maxUnwritten {
		st.sync()
	}
	return read(ctx, st, s.paths(paths))
}

// Apply implements [executor.Stage].
func (s *openedStage) Apply(ctx context.Context, o executor.ApplyOptions) (*executor.Applied, error) {
	none := &executor.Applied{Applied: []string{}, Conflicts: []executor.Conflict{}}
	st, of, err := s.lock(ctx, o.Force || o.DryRun)
	if err != nil {
		return none, err
	}
	defer st.Unlock()
	if err := st.synced(); err != nil && !o.Force && !o.DryRun {
		return none, err
	}
	o.Paths = s.paths(o.Paths)
	done, err := apply.Apply(ctx, of, o)
	switch {
	case err != nil || of.InUse || o.DryRun:
	case done.Left == 0:
		err = st.Forget()
	default:
		st.sync() // what was applied was synced before: most of it has been written
	}
	return done, err
}

// Discard implements [executor.Stage]. A command that uses the stage has it mounted, and an overlay does not notice
// what is taken from it: its next writes would fail. So force changes nothing.
func (s *openedStage) Discard(ctx context.Context, _ bool, paths ...string) error {
	st, of, err := s.lock(ctx, false)
	switch {
	case err == nil:
	case len(paths) > 0 || ctx.Err() != nil || errors.Is(err, executor.ErrStageInUse) ||
		errors.Is(err, executor.ErrNoStage):
		return err
	default: // it cannot be read, or its directory was moved
		return s.store.forgetUnread(s.id)
	}
	defer st.Unlock()
	if len(paths) == 0 {
		// Files of an apply that was killed are named after the stage: whatever they are, they go with it.
		if err := apply.Recover(ctx, of); err != nil && ctx.Err() != nil {
			return err
		}
		return st.Forget()
	}
	left, err := apply.Discard(ctx, of, s.paths(paths)...)
	if err == nil && left == 0 {
		return st.Forget()
	}
	if err == nil {
		err = of.Base.Update(ctx, layersOf(of), changes.Now())
	}
	return err
}

func layersOf(of *apply.Stage) []changes.Layer {
	out := make([]changes.Layer, len(of.Roots))
	for i := range of.Roots {
		out[i] = of.Roots[i].Layer
	}
	return out
}

// lock locks the stage and returns what apply needs of it. With force a stage that a command uses will do.
func (s *openedStage) lock(ctx context.Context, force bool) (st *Stage, of *apply.Stage, err error) {
	if err := strict.CheckContext(ctx); err != nil {
		return nil, nil, err
	}
	if st, err = s.store.Open(s.workspace, s.id); err != nil {
		return nil, nil, err
	}
	of = &apply.Stage{ID: st.ID, Dir: st.Dir(), Workspace: st.Workspace}
	err = st.Lock()
	if of.InUse = errors.Is(err, executor.ErrStageInUse); of.InUse && force {
		err = nil
	}
	if err != nil {
		return nil, nil, err
	}
	locked := st
	defer func() {
		if err != nil {
			locked.Unlock()
		}
	}()
	if err := st.check(); err != nil {
		return nil, nil, err
	}
	if st.Began != 0 && !of.InUse { // a run was killed
		if err := settle(ctx, st); err != nil {
			return nil, nil, err
		}
	}
	all, base, err := st.Changes()
	if err != nil {
		return nil, nil, err
	}
	if of.InUse {
		if err := base.Update(ctx, all, changes.Now()); err != nil {
			return nil, nil, err
		}
	}
	of.Base = base
	for i, l := range all {
		of.Roots = append(of.Roots, apply.Root{Layer: l, ID: st.Roots[i].ID})
	}
	of.Closed = st.closed(s.judge)
	return st, of, nil
}

// closed returns what says why none of the commands of a stage could write a path; nil is that one could.
func (st *Stage) closed(by Judge) func(path string) error {
	var judges []func(sandbox.Access) error
	for i := range st.Policies {
		judge, err := by(&st.Policies[i])
		if err != nil {
			judge = func(sandbox.Access) error { return err }
		}
		judges = append(judges, judge)
	}
	return func(path string) error {
		err := errors.New("no command of the stage could write it")
		for _, judge := range judges {
			if err = judge(sandbox.Access{Op: sandbox.Write, Path: path}); err == nil {
				return nil
			}
		}
		return err
	}
}
