// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Server performs requests about the stages of one owner.
type Server struct {
	Stager executor.Stager // nil where there are none
	Owner  string
	// Note keeps in the audit log what was done with a stage. Nil keeps nothing.
	Note func(kind string, body map[string]any) error
	// Await returns when version is another one than that of the parameters, or their time is over. The error
	// is that of ctx, or says that it cannot wait.
	Await func(ctx context.Context, p *wire.ListWait, version func() string) error
}

// NoteKind is the kind of records about stages.
const NoteKind = "stage"

// NoteOf is the record of what was done with a stage: the action is "applied" or "discarded". No paths mean
// all.
func NoteOf(action string, info executor.StageInfo, paths []string) map[string]any {
	return map[string]any{"action": action, "id": info.ID, "workspace": info.Workspace, "paths": paths}
}

func (s *Server) note(action string, stage executor.Stage, paths []string) error {
	if s.Note == nil {
		return nil
	}
	return s.Note(NoteKind, NoteOf(action, stage.Info(), paths))
}

// A Request is a decoded request. The error is a *wire.Error.
type Request func(context.Context, *Server) (any, error)

// Methods returns what decodes the parameters of each method.
func Methods() map[string]func(json.RawMessage) (Request, error) {
	return map[string]func(json.RawMessage) (Request, error){
		methodList: func(params json.RawMessage) (Request, error) {
			p, err := wire.DecodeList(params)
			return func(ctx context.Context, s *Server) (any, error) { return s.awaitList(ctx, p) }, err
		},
		methodChanges: on(func(ctx context.Context, _ *Server, s executor.Stage, p *ChangesOf) (any, error) {
			all, err := s.Changes(ctx, p.Paths...)
			list, _ := wire.Fit(all[min(p.After, uint64(len(all))):], maxAnswer)
			return Changes{Total: len(all), Changes: list}, err
		}),
		methodDiff:  on(diff),
		methodApply: on(apply),
		methodDiscard: on(func(ctx context.Context, by *Server, s executor.Stage, p *Discard) (any, error) {
			err := s.Discard(ctx, p.Force, p.Paths...)
			if err == nil {
				err = by.note("discarded", s, p.Paths)
			}
			return struct{}{}, err
		}),
	}
}

// on returns what decodes the parameters of a method about a stage, which perform is called with.
func on[P any, Q interface {
	*P
	of() *Of
}](perform func(context.Context, *Server, executor.Stage, *P) (any, error),
) func(json.RawMessage) (Request, error) {
	return func(params json.RawMessage) (Request, error) {
		p, err := wire.Decode[P](params)
		return func(ctx context.Context, s *Server) (any, error) {
			stage, err := s.open(ctx, Q(p).of().ID)
			if err != nil {
				return nil, failure(err)
			}
			result, err := perform(ctx, s, stage, p)
			return result, failure(err)
		}, err
	}
}

func (o *Of) of() *Of { return o }

// awaitList is stage/list. With a version it waits for another one.
func (s *Server) awaitList(ctx context.Context, p *wire.ListWait) (any, error) {
	if p.Since == "" {
		return s.list(ctx)
	}
	var list List
	var failed error
	err := s.Await(ctx, p, func() string {
		list, failed = s.list(ctx)
		return list.Version
	})
	return list, cmp.Or(failed, err)
}

func (s *Server) list(ctx context.Context) (List, error) {
	list, own := List{}, []executor.StageInfo{}
	if s.Stager != nil {
		all, err := s.Stager.Stages(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return list, context.Cause(ctx)
		case err != nil:
			list.Warning = err.Error()
		}
		for _, info := range all {
			if info.Owner == s.Owner {
				own = append(own, info)
			}
		}
	}
	text, _ := json.Marshal(own) // plain values always encode
	sum := sha256.Sum256(append(text, list.Warning...))
	list.Version = hex.EncodeToString(sum[:16])
	list.Stages, list.Omitted = wire.Fit(own, maxAnswer)
	return list, nil
}

// open returns a stage of the owner. One of another owner is as unknown as one that does not exist.
func (s *Server) open(ctx context.Context, id string) (executor.Stage, error) {
	unknown := &executor.StageError{ID: id, Why: "there is no stage " + text.Word(id),
		Fix: "stage/list has those that there are", Err: executor.ErrNoStage}
	if s.Stager == nil {
		return nil, unknown
	}
	stage, err := s.Stager.OpenStage(ctx, "", id)
	switch {
	case errors.Is(err, executor.ErrNoStage):
		return nil, unknown
	case err != nil:
		return nil, err
	}
	if info := stage.Info(); info.ID != id || info.Owner != s.Owner {
		return nil, unknown
	}
	return stage, nil
}

// A window takes a part of a diff, and looks at all of it.
type window struct {
	from, at uint64
	part     []byte
}

// Write implements [io.Writer].
func (w *window) Write(p []byte) (int, error) {
	begin := w.at
	w.at += uint64(len(p))
	if room := maxAnswer - len(w.part); room > 0 && w.at > w.from {
		piece := p[max(w.from, begin)-begin:]
		w.part = append(w.part, piece[:min(len(piece), room)]...)
	}
	return len(p), nil
}

// diff makes the diff for each part again, which keeps nothing between requests: the digest tells the client
// whether it is still the same one.
func diff(ctx context.Context, _ *Server, s executor.Stage, p *DiffOf) (any, error) {
	w, sum := &window{from: p.From, part: []byte{}}, sha256.New()
	err := s.Diff(ctx, io.MultiWriter(w, sum), p.Paths...)
	return Diff{Part: w.part, Total: w.at, Digest: hex.EncodeToString(sum.Sum(nil))}, err
}

// apply applies changes, and keeps that it did, also where it ended early.
func apply(ctx context.Context, by *Server, s executor.Stage, p *Apply) (any, error) {
	done, err := s.Apply(ctx, executor.ApplyOptions{Paths: p.Paths, DryRun: p.DryRun, Force: p.Force})
	if conflict := new(executor.ConflictError); errors.As(err, &conflict) {
		err = nil // the result says so
	}
	if done != nil && len(done.Applied) > 0 && !p.DryRun {
		err = errors.Join(err, by.note("applied", s, p.Paths))
	}
	return applied(done), err
}

// applied returns the result for what was applied.
func applied(a *executor.Applied) (made Applied) {
	if a == nil {
		a = new(executor.Applied)
	}
	var omitted [3]int
	made.Left = a.Left
	made.Applied, omitted[0] = wire.Fit(a.Applied, maxAnswer)
	made.Conflicts, omitted[1] = wire.Fit(a.Conflicts, maxAnswer)
	made.Refused, omitted[2] = wire.Fit(a.Refused, maxAnswer)
	made.Omitted = omitted[0] + omitted[1] + omitted[2]
	return made
}
