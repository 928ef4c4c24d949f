// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// fewChanges is how many changes the answer about a run lists.
const fewChanges = 20

// staged says what is in the stage after a run.
func (a *answer) staged(s *executor.Staged) {
	if list := s.Changes; len(list) > fewChanges {
		a.facts["changes"], a.facts["changes_omitted"] = list[:fewChanges], s.Total-fewChanges
	}
	if s.Total > 0 {
		n := "1 change is"
		if s.Total > 1 {
			n = fmt.Sprintf("%d changes are", s.Total)
		}
		a.say("%s staged in all; changes shows what, and the user applies it (sallyport apply %s) or discards it",
			n, s.ID)
	}
}

// stage returns the stage of the conversation; nil before the first command.
func (s *Server) stage(ctx context.Context) (executor.Stage, error) {
	stager := s.runs.Stager()
	if stager == nil {
		return nil, errors.New("this machine has no stages")
	}
	stage, err := stager.OpenStage(ctx, s.opts.Root, s.opts.Stage)
	if errors.Is(err, executor.ErrNoStage) {
		return nil, nil //nolint:nilnil // that is how it begins
	}
	return stage, err
}

// letters are what a list has for the kinds of changes, as git status has.
var letters = map[string]string{executor.ChangeAdded: "A", executor.ChangeModified: "M",
	executor.ChangeDeleted: "D", executor.ChangeRenamed: "R", executor.ChangeMode: "M",
	executor.ChangeType: "T"}

// changes lists what the commands of the conversation changed.
func (s *Server) changes(c *call) (*answer, error) {
	paths, withDiff, left := c.args.list("paths"), c.args.truth("diff"), bytesPerToken*c.args.tokens()
	if len(paths) > maxEntries {
		c.args.fail("paths", "it has more than %d entries", maxEntries)
	}
	if c.args.err != nil {
		return nil, c.args.err
	}
	a := &answer{facts: map[string]any{"stage": nil, "changes_total": 0, "changes": []any{},
		"changes_omitted": 0}}
	stage, err := s.stage(c.ctx)
	if err != nil {
		return nil, err
	}
	if stage == nil {
		a.say("no command has run yet")
		return a, nil
	}
	info := stage.Info()
	a.facts["stage"] = map[string]string{"id": info.ID, "name": info.Name}
	all, err := stage.Changes(c.ctx, paths...)
	if err != nil {
		return nil, err
	}
	share := left
	if withDiff {
		share /= 2
	}
	listed, rows := list(all, share), new(strings.Builder)
	for _, one := range listed {
		rows.WriteString(row(&one, info.Workspace))
	}
	a.facts["changes_total"], a.facts["changes"] = len(all), listed
	a.facts["changes_omitted"] = len(all) - len(listed)
	a.say("%d changes in stage %s, which the user applies (sallyport apply %s) or discards; "+
		"%d are not listed", len(all), info.ID, info.ID, len(all)-len(listed))
	a.shown = rows.String()
	if !withDiff || len(all) == 0 {
		return a, nil
	}
	return a, a.diff(c.ctx, stage, paths, left-share)
}

// list returns the first changes that a budget in bytes of JSON has room for. It is not nil.
func list(all []executor.Change, most int) []executor.Change {
	out := []executor.Change{}
	for i := range all {
		if most -= len(asJSON(&all[i])) + 1; most < 0 {
			break
		}
		out = append(out, all[i])
	}
	return out
}

// row is the line of a change.
func row(c *executor.Change, workspace string) string {
	name := c.Path
	if c.Root != workspace {
		name = c.Root + "/" + c.Path
	}
	if c.From != "" {
		name = c.From + " -> " + name
	}
	if c.RunsLater {
		name += " (runs later)"
	}
	return text.Line(letters[c.Kind]+" "+name) + "\n"
}

// diff adds the beginning of the diff.
func (a *answer) diff(ctx context.Context, stage executor.Stage, paths []string, most int) error {
	out := &beginning{most: most}
	if err := stage.Diff(ctx, out, paths...); err != nil {
		return err
	}
	shown := first(text.Decode(out.Bytes()), most)
	a.facts["diff"], a.facts["truncated"] = shown, len(shown) < out.total
	a.facts["omitted_bytes"] = max(out.total-len(shown), 0)
	a.shown += "\n" + shown
	if len(shown) < out.total {
		a.say("%d of %d bytes of the diff are left out; name paths, or read the resource of a run with %s",
			out.total-len(shown), out.total, diffSuffix)
	}
	return nil
}

// A beginning keeps the first bytes of what is written.
type beginning struct {
	bytes.Buffer
	most, total int
}

// Write implements [io.Writer].
func (b *beginning) Write(p []byte) (int, error) {
	b.total += len(p)
	b.Buffer.Write(p[:min(len(p), b.most-b.Len())])
	return len(p), nil
}

// maxDiff is how many bytes of a diff a resource has.
const maxDiff = 16 << 20

// diffOf describes the diff of the conversation, at the address of a run.
func diffOf(r *runs.Run) *sdk.Resource {
	return &sdk.Resource{URI: outputPrefix + r.ID() + diffSuffix, Name: "diff of run " + r.ID(),
		MIMEType: diffText}
}

// readDiff returns the diff of the stage that a run had.
func (s *Server) readDiff(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult,
	error) {
	uri := req.Params.URI
	id := strings.TrimSuffix(strings.TrimPrefix(uri, outputPrefix), diffSuffix)
	if _, err := s.runs.Find(owner, id); err != nil {
		return nil, unknownResource(uri)
	}
	stage, err := s.stage(ctx)
	out := &beginning{most: maxDiff}
	if err == nil && stage != nil {
		err = stage.Diff(ctx, out)
	}
	if err == nil && out.total > maxDiff {
		err = errors.New("the diff is too long; call changes with paths and diff")
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text.Line(err.Error())}
	}
	return &sdk.ReadResourceResult{Cacheable: sdk.Cacheable{CacheScope: "private"},
		Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: diffText,
			Text: text.Decode(out.Bytes())}}}, nil
}
