// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Client is the [executor.Stager] of an exec-server.
type Client struct{ Caller wire.Caller }

// Stages implements [executor.Stager].
func (c *Client) Stages(ctx context.Context) ([]executor.StageInfo, error) {
	var got List
	if err := c.Caller.Repeat(ctx, methodList, struct{}{}, &got); err != nil {
		return nil, explained(err)
	}
	var err error
	switch {
	case got.Warning != "":
		err = errors.New(got.Warning)
	case got.Omitted > 0:
		err = fmt.Errorf("%d stages are not listed: apply or discard some first", got.Omitted)
	}
	return got.Stages, err
}

// OpenStage implements [executor.Stager].
func (c *Client) OpenStage(ctx context.Context, workspace, id string) (executor.Stage, error) {
	all, err := c.Stages(ctx)
	if all == nil && err != nil {
		return nil, err
	}
	info, err := find(all, workspace, id)
	if err != nil {
		return nil, err
	}
	return &stage{Client: c, info: info}, nil
}

// leastPrefix is how many characters of an ID name a stage.
const leastPrefix = 4

// find returns the stage of a list that words of a user name: see [executor.Stager].
func find(all []executor.StageInfo, workspace, id string) (executor.StageInfo, error) {
	var found []executor.StageInfo
	for _, info := range all {
		here := strings.HasPrefix(path.Clean(workspace)+"/", info.Workspace+"/")
		switch {
		case id != "" && info.ID == id:
			return info, nil
		case id == "" && here:
			found = []executor.StageInfo{info} // the last one is the newest
		case id != "" && here && info.Name == id,
			len(id) >= leastPrefix && strings.HasPrefix(info.ID, id):
			found = append(found, info)
		}
	}
	no := func(why string) (executor.StageInfo, error) {
		return executor.StageInfo{}, &executor.StageError{ID: id, Why: why,
			Fix: "sallyport stages lists them", Err: executor.ErrNoStage}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return no(fmt.Sprintf("%s names %d stages", text.Word(id), len(found)))
	case id == "":
		return no("there is no stage of the workspace " + text.Word(workspace))
	}
	return no("there is no stage " + text.Word(id))
}

// A stage is one of an exec-server.
type stage struct {
	*Client
	info executor.StageInfo
}

func (s *stage) Info() executor.StageInfo { return s.info }

// of returns what a request is about.
func (s *stage) of(paths []string) Of { return Of{ID: s.info.ID, Paths: paths} }

// errShort ends a read of what would never be complete.
var errShort = errors.New("the exec-server answers without a part of what was asked for")

// Changes implements [executor.Stage].
func (s *stage) Changes(ctx context.Context, paths ...string) (all []executor.Change, err error) {
	for {
		p, got := ChangesOf{Of: s.of(paths), After: uint64(len(all))}, Changes{}
		if err := s.Caller.Repeat(ctx, methodChanges, &p, &got); err != nil {
			return nil, explained(err)
		}
		switch all = append(all, got.Changes...); {
		case len(all) >= got.Total:
			return all, nil
		case len(got.Changes) == 0:
			return nil, errShort
		}
	}
}

// errOther is for a diff that is another one than when its first part was read.
var errOther = errors.New("the stage was changed while the diff was read; read it again")

// Diff implements [executor.Stage].
func (s *stage) Diff(ctx context.Context, w io.Writer, paths ...string) error {
	digest := ""
	for at := uint64(0); ; {
		p, got := DiffOf{Of: s.of(paths), From: at}, Diff{}
		if err := s.Caller.Repeat(ctx, methodDiff, &p, &got); err != nil {
			return explained(err)
		}
		if digest = cmp.Or(digest, got.Digest); digest != got.Digest {
			return errOther
		}
		if _, err := w.Write(got.Part); err != nil {
			return fmt.Errorf("cannot write the diff: %w", err)
		}
		switch at += uint64(len(got.Part)); {
		case at >= got.Total:
			return nil
		case len(got.Part) == 0:
			return errShort
		}
	}
}

// Apply implements [executor.Stage]. After an answer that was lost it is called again, which is harmless.
func (s *stage) Apply(ctx context.Context, o executor.ApplyOptions) (*executor.Applied, error) {
	p, got := Apply{Of: s.of(o.Paths), DryRun: o.DryRun, Force: o.Force}, Applied{}
	if err := s.Caller.Call(ctx, methodApply, &p, &got); err != nil {
		return &executor.Applied{}, explained(err)
	}
	done := &executor.Applied{Applied: got.Applied, Conflicts: got.Conflicts, Left: got.Left,
		Refused: got.Refused}
	if len(got.Conflicts) > 0 && !o.Force { // by force they were overwritten
		return done, &executor.ConflictError{Conflicts: got.Conflicts}
	}
	return done, nil
}

// Discard implements [executor.Stage].
func (s *stage) Discard(ctx context.Context, force bool, paths ...string) error {
	p := Discard{Of: s.of(paths), Force: force}
	return explained(s.Caller.Call(ctx, methodDiscard, &p, nil))
}

// explained returns the error of a stage that a server answers with; others, and nil, stay as they are.
func explained(err error) error {
	if own := ErrorOf(err); own != nil {
		return own
	}
	return err
}
