// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A fake has stages in memory.
type fake struct {
	all                []*fakeStage
	err                error
	running, restarted bool
}

type fakeStage struct {
	of      *fake
	info    executor.StageInfo
	changes []executor.Change
	diff    func() string
	applied executor.ApplyOptions
}

func (f *fake) Stages(context.Context) (list []executor.StageInfo, err error) {
	for _, s := range f.all {
		list = append(list, s.info)
	}
	return list, f.err
}

func (f *fake) OpenStage(_ context.Context, _, id string) (executor.Stage, error) {
	for _, s := range f.all {
		if strings.HasPrefix(s.info.ID, id) {
			return s, nil
		}
	}
	return nil, &executor.StageError{Why: "none", Err: executor.ErrNoStage}
}

func (s *fakeStage) Info() executor.StageInfo { return s.info }

func (s *fakeStage) Changes(_ context.Context, paths ...string) ([]executor.Change, error) {
	if len(paths) > 0 && paths[0] == "none" {
		return nil, &executor.StageError{Why: "no change at none", Err: executor.ErrNoChange}
	}
	return s.changes, nil
}

func (s *fakeStage) Diff(_ context.Context, w io.Writer, _ ...string) error {
	_, err := io.Copy(w, strings.NewReader(s.diff()))
	return err
}

func (s *fakeStage) Apply(_ context.Context, o executor.ApplyOptions) (*executor.Applied, error) {
	s.applied = o
	list := []executor.Conflict{{Path: "a", Reason: "content"}}
	switch {
	case o.Force:
	case s.of.restarted:
		return new(executor.Applied), &executor.StageError{Why: "it was restarted", Fix: "add --force",
			Err: executor.ErrNotSynced}
	default:
		return &executor.Applied{Conflicts: list, Left: 1}, &executor.ConflictError{Conflicts: list}
	}
	return &executor.Applied{Applied: []string{"a"}, Conflicts: list,
		Refused: []executor.Conflict{{Path: "b", Reason: "a pipe"}}}, nil
}

func (s *fakeStage) Discard(_ context.Context, force bool, _ ...string) error {
	if s.of.running && !force {
		return &executor.StageError{Why: "run 7 uses the stage", Fix: "wait for it",
			Err: executor.ErrStageInUse}
	}
	return nil
}

// A direct is a [wire.Caller] of a Server, with messages as they are on the wire.
type direct struct {
	*Server
	calls []string
}

func (d *direct) Repeat(ctx context.Context, method string, params, result any) error {
	return d.Call(ctx, method, params, result)
}

func (d *direct) Call(ctx context.Context, method string, params, result any) error {
	d.calls = append(d.calls, method)
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	perform, err := Methods()[method](text)
	if err != nil {
		return &wire.Error{Code: wire.CodeInvalidParams, Message: err.Error()}
	}
	made, err := perform(ctx, d.Server)
	if err != nil {
		return err
	}
	if text, err = json.Marshal(made); err != nil || result == nil {
		return err
	}
	if len(text) > wire.MaxFrame {
		return fmt.Errorf("an answer of %d bytes", len(text))
	}
	return json.Unmarshal(text, result)
}

// newFake returns a client of "me", whose stages are the second and the third one.
func newFake() (*fake, *direct, *Client) {
	f := &fake{}
	for i, name := range []string{"a", "a", "b"} {
		owner := "me"
		if i == 0 {
			owner = "another"
		}
		f.all = append(f.all, &fakeStage{of: f,
			info: executor.StageInfo{ID: strings.Repeat(fmt.Sprint(i), 16),
				Name: name, Workspace: "/w", Owner: owner}, diff: func() string { return "" }})
	}
	d := &direct{Server: &Server{Stager: f, Owner: "me"}}
	return f, d, &Client{Caller: d}
}

// TestOwner: a client sees and opens its own stages only, by whole IDs.
func TestOwner(t *testing.T) {
	_, d, c := newFake()
	all, err := c.Stages(t.Context())
	if err != nil || len(all) != 2 || all[0].ID != "1111111111111111" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, test := range []struct{ name, id string }{
		{"of another owner", "0000000000000000"}, {"a prefix", "1111"}, {"none", "ffff"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for method := range Methods() {
				if method == methodList {
					continue
				}
				err := explained(d.Call(t.Context(), method,
					map[string]any{"stageId": test.id, "force": true}, nil))
				if !errors.Is(err, executor.ErrNoStage) {
					t.Errorf("%s: %v", method, err)
				}
			}
		})
	}
	d.Owner = "other"
	if _, err := c.OpenStage(t.Context(), "/w", "1111111111111111"); !errors.Is(err, executor.ErrNoStage) {
		t.Errorf("of another owner: %v", err)
	}
}

// TestFind: words of a user find a stage.
func TestFind(t *testing.T) {
	list := []executor.StageInfo{
		{ID: "11112222", Name: "a", Workspace: "/w"}, {ID: "11113333", Name: "b", Workspace: "/w"},
		{ID: "44445555", Name: "a", Workspace: "/x"},
	}
	for _, test := range []struct{ name, workspace, id, want string }{
		{"whole", "/", "44445555", "44445555"}, {"prefix", "/", "4444", "44445555"},
		{"short prefix", "/", "444", ""}, {"two", "/w", "1111", ""},
		{"name", "/w", "a", "11112222"}, {"name below", "/w/d", "b", "11113333"},
		{"name elsewhere", "/wx", "b", ""},
		{"newest", "/w/d", "", "11113333"}, {"none", "/y", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := find(list, test.workspace, test.id)
			if got.ID != test.want || (err != nil) != (test.want == "") {
				t.Errorf("%q, %v; want %q", got.ID, err, test.want)
			}
			if err != nil && !errors.Is(err, executor.ErrNoStage) {
				t.Error(err)
			}
		})
	}
}

// TestPages: lists and diffs of any length arrive whole, in parts that a message carries.
func TestPages(t *testing.T) {
	f, d, c := newFake()
	for i := range 60_000 {
		f.all[1].changes = append(f.all[1].changes,
			executor.Change{Path: fmt.Sprint(i, "/", strings.Repeat("x", 150)),
				Root: "/w", Kind: executor.ChangeAdded, File: "file", Mode: "0644"})
	}
	whole := strings.Repeat("0123456789abcdef\n", 600_000)
	f.all[1].diff = func() string { return whole }
	s, err := c.OpenStage(t.Context(), "/w/below", "a")
	if err != nil {
		t.Fatal(err)
	}
	d.calls = nil
	got, err := s.Changes(t.Context())
	if err != nil || !reflect.DeepEqual(got, f.all[1].changes) {
		t.Errorf("%d changes, %v", len(got), err)
	}
	var out bytes.Buffer
	if err := s.Diff(t.Context(), &out); err != nil || out.String() != whole {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	if len(d.calls) < 6 {
		t.Errorf("only %q", d.calls)
	}
	n := 0
	f.all[1].diff = func() string { n++; return fmt.Sprint(n, whole) }
	if err := s.Diff(t.Context(), io.Discard); !errors.Is(err, errOther) {
		t.Errorf("a diff that changes meanwhile: %v", err)
	}
}

// TestErrors: errors keep their kinds and their words.
func TestErrors(t *testing.T) {
	f, _, c := newFake()
	f.err, f.running = errors.New("one cannot be read"), true
	if all, err := c.Stages(t.Context()); len(all) != 2 || err == nil || err.Error() != f.err.Error() {
		t.Errorf("%d, %v", len(all), err)
	}
	s, err := c.OpenStage(t.Context(), "/w", "")
	if err != nil || s.Info().Name != "b" {
		t.Fatal(err)
	}
	var conflict *executor.ConflictError
	done, err := s.Apply(t.Context(), executor.ApplyOptions{Paths: []string{"a"}, DryRun: true})
	if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || done.Left != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if o := f.all[2].applied; !o.DryRun || o.Force || len(o.Paths) != 1 {
		t.Errorf("%+v", o)
	}
	done, err = s.Apply(t.Context(), executor.ApplyOptions{Force: true})
	if err != nil || len(done.Applied) != 1 || len(done.Conflicts) != 1 || len(done.Refused) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	f.restarted = true
	if _, err = s.Apply(t.Context(), executor.ApplyOptions{}); !errors.Is(err, executor.ErrNotSynced) ||
		err.Error() != "it was restarted; add --force" {
		t.Errorf("%v", err)
	}
	err = s.Discard(t.Context(), false)
	if own := new(executor.StageError); !errors.Is(err, executor.ErrStageInUse) || !errors.As(err, &own) ||
		err.Error() != "run 7 uses the stage; wait for it" {
		t.Errorf("%v", err)
	}
	if err := s.Discard(t.Context(), true); err != nil {
		t.Error(err)
	}
	if _, err := s.Changes(t.Context(), "none"); !errors.Is(err, executor.ErrNoChange) {
		t.Error(err)
	}
}

// TestNoStages: where there are none, a list is empty and none is known.
func TestNoStages(t *testing.T) {
	c := &Client{Caller: &direct{Server: new(Server)}}
	if all, err := c.Stages(t.Context()); err != nil || all == nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := c.OpenStage(t.Context(), "/w", ""); !errors.Is(err, executor.ErrNoStage) {
		t.Error(err)
	}
}
