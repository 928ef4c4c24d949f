// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/audits"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/server/console"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// history answers the methods about recorded runs.
type history struct{ env *Env }

// A recorded run in a list. The member names stay.
type recorded struct {
	ID       string   `json:"id"`
	Started  int64    `json:"startedAtMs"`
	Args     []string `json:"argv"`
	Dir      string   `json:"cwd"`
	End      string   `json:"end"`
	ExitCode int      `json:"exitCode"`
	Signal   int      `json:"signal,omitempty"`
	Duration int64    `json:"durationMs"`
	Denials  int      `json:"denials"`
	Staged   int      `json:"staged,omitempty"`
}

func recordedOf(r *explain.Record) recorded {
	out := recorded{ID: r.Run, Started: r.Start.UnixMilli(), Args: r.Args, Dir: r.Dir, End: string(r.End),
		ExitCode: r.ExitCode, Signal: r.Signal, Duration: r.Duration.Milliseconds(),
		Denials: len(r.Denials()) + r.DenialsOmitted}
	if r.Stage != nil {
		out.Staged = r.Stage.Total
	}
	return out
}

// list is history/list: the newest runs first, from behind a run on.
func (h *history) list(_ context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Before, Search string
		Limit          int
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: err.Error()}
	}
	const usual, most = 100, 500
	limit := limited(p.Limit, usual, most)
	log, err := audits.ReadRuns(h.env.Env, false)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Runs  []recorded `json:"runs"`
		Next  string     `json:"next,omitempty"`
		Total int        `json:"total"`
	}{Runs: []recorded{}, Total: len(log.Records)}
	passed := p.Before == ""
	for _, r := range slices.Backward(log.Records) {
		switch {
		case !passed:
			passed = r.Run == p.Before
			continue
		case !matches(&r, p.Search):
			continue
		case len(answer.Runs) == limit:
			answer.Next = answer.Runs[limit-1].ID
			return answer, nil
		}
		answer.Runs = append(answer.Runs, recordedOf(&r))
	}
	return answer, nil
}

// matches reports whether a run has a text in its command line, its directory or its ID; every run has the empty one.
func matches(r *explain.Record, search string) bool {
	search = strings.ToLower(search)
	return strings.Contains(strings.ToLower(strings.Join(r.Args, " ")), search) ||
		strings.Contains(strings.ToLower(r.Dir), search) || strings.HasPrefix(r.Run, search)
}

// A denied is a denial with what allows it. The member names stay.
type denied struct {
	Op       sandbox.Op `json:"op"`
	Path     string     `json:"path,omitempty"`
	Host     string     `json:"host,omitempty"`
	Text     string     `json:"text"` // the line of why
	Rule     string     `json:"rule,omitempty"`
	Source   string     `json:"source"`
	Grant    string     `json:"grant,omitempty"`
	Harmless string     `json:"harmless,omitempty"`
	Program  string     `json:"program,omitempty"`
}

// A detail is the result of history/read. The member names stay.
type detail struct {
	Run     recorded        `json:"run"`
	Result  json.RawMessage `json:"result"` // as of run --json, without output
	Text    string          `json:"text"`   // what why prints
	Denials []denied        `json:"denials"`
	Allow   *allowing       `json:"allow,omitempty"`
}

// An allowing is how everything is allowed that can be: command lines.
type allowing struct {
	Command string `json:"command,omitempty"`
	Config  string `json:"config,omitempty"` // for the project, from now on
}

// read is history/read.
func (h *history) read(_ context.Context, params json.RawMessage) (any, error) {
	var p struct {
		ID string `json:"id" rule:"need"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	r, err := h.find(p.ID)
	if err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir() // empty when it is not known
	d := detail{Run: recordedOf(r), Result: r.Line, Text: explain.Explain(*r, home, ""), Denials: []denied{}}
	for _, one := range r.Denials() {
		d.Denials = append(d.Denials, denied{Op: one.Op, Path: one.Path, Host: one.Addr,
			Text: explain.Operation(one, home), Rule: one.Rule, Source: string(one.Source), Grant: one.Grant,
			Harmless: one.Harmless, Program: one.Program})
	}
	a := allowing{explain.ShellWords(explain.AllowingCommand(*r, "")),
		explain.ShellWords(explain.KeepingCommand(*r, ""))}
	if a != (allowing{}) {
		d.Allow = &a
	}
	return d, nil
}

// find returns a recorded run.
func (h *history) find(id string) (*explain.Record, error) {
	log, err := audits.ReadRuns(h.env.Env, false)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(log.Records, func(r explain.Record) bool { return r.Run == id })
	if at < 0 {
		return nil, console.Refused(wire.CodeInvalidRequest, "no run with this ID is recorded", "unknownRun")
	}
	return &log.Records[at], nil
}
