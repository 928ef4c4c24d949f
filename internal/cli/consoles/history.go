// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/server/console"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// history answers the methods about recorded runs.
type history struct {
	env     *Env
	changes runs.Changes // of the logs
}

// follow follows the logs until end is called.
func (h *history) follow() (end func(), err error) {
	dirs := args.AuditDirs(h.env.Env)
	if dir, err := audit.DefaultDir(); len(dirs) == 0 && err == nil {
		if root, err := safefile.MakeDirs(dir); err == nil { // without it the first run of all is not told
			_ = root.Close()
		}
		dirs = append(dirs, dir)
	}
	return listen.WatchDirs(dirs, h.changes.Tell)
}

// version identifies the newest run of each log.
func (h *history) version() string {
	newest := "runs"
	for _, dir := range args.AuditDirs(h.env.Env) {
		// What cannot be read is an error of the list.
		_ = audit.ReadBack(dir, explain.RecordKind, 0, func(l audit.Record) error {
			newest += fmt.Sprintf(" %d", l.N)
			return io.EOF
		})
	}
	return newest
}

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

// recordedOf reads what a list has of the body of a record; false for what is none. Results as a whole take a
// hundred times as long.
func recordedOf(body []byte) (recorded, bool) {
	var r struct {
		Version  int               `json:"v"`
		Start    time.Time         `json:"start"`
		Run      string            `json:"run"`
		Args     []string          `json:"argv"`
		Dir      string            `json:"cwd"`
		End      string            `json:"end"`
		ExitCode int               `json:"exit_code"`
		Signal   int               `json:"signal"`
		Duration int64             `json:"duration_ms"`
		Denials  []json.RawMessage `json:"denials"`
		Omitted  int               `json:"denials_omitted"`
		Staged   int               `json:"changes_total"`
	}
	if json.Unmarshal(body, &r) != nil || r.Version < 1 || r.Run == "" {
		return recorded{}, false
	}
	return recorded{r.Run, r.Start.UnixMilli(), append([]string{}, r.Args...), r.Dir, r.End, r.ExitCode,
		r.Signal, r.Duration, len(r.Denials) + r.Omitted, r.Staged}, true
}

// list is history/list: the runs that ended last first, from behind a place on. With since it waits for
// another version. There may be several logs, one after the other.
func (h *history) list(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Before string `json:"before"` // as the number of a log, and of a line in it
		Search string `json:"search"`
		Limit  int    `json:"limit"`
		wire.ListWait
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	from, before := 0, uint64(0)
	if _, err := fmt.Sscanf(p.Before, "%d.%d", &from, &before); p.Before != "" && err != nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "before is not that of an answer"}
	}
	const usual, most = 100, 500
	limit := min(cmp.Or(max(p.Limit, 0), usual), most)
	answer := struct {
		Runs    []recorded `json:"runs"`
		Next    string     `json:"next,omitempty"` // for before; empty at the end
		Version string     `json:"version"`
	}{Runs: []recorded{}}
	waiting, cancel := context.WithTimeout(ctx, waitOf(&p.ListWait))
	defer cancel()
	for {
		changed := h.changes.Next()
		answer.Version = h.version()
		if answer.Version != p.Since || !runs.Await(waiting, []<-chan struct{}{changed}) {
			break
		}
	}
	last := ""
	for i, dir := range args.AuditDirs(h.env.Env) {
		if i < from || answer.Next != "" {
			continue
		}
		if i > from {
			before = 0
		}
		err := audit.ReadBack(dir, explain.RecordKind, before, func(l audit.Record) error {
			r, ok := recordedOf(l.Body)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case l.Bad != "" || !ok || !r.matches(p.Search):
				return nil
			case len(answer.Runs) == limit:
				answer.Next = last
				return io.EOF
			}
			answer.Runs = append(answer.Runs, r)
			last = fmt.Sprintf("%d.%d", i, l.N)
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return answer, nil
}

// matches reports whether a run has a text in its command line or its directory, or an ID that begins with
// it.
func (r *recorded) matches(search string) bool {
	search = strings.ToLower(search)
	return search == "" || strings.Contains(strings.ToLower(strings.Join(r.Args, " ")), search) ||
		strings.Contains(strings.ToLower(r.Dir), search) || strings.HasPrefix(r.ID, search)
}

// A denied is a denial with what allows it. The member names stay.
type denied struct {
	Op       sandbox.Op     `json:"op"`
	Path     string         `json:"path,omitempty"`
	Host     string         `json:"host,omitempty"`
	Text     string         `json:"text"` // the line of why
	Rule     string         `json:"rule,omitempty"`
	Source   sandbox.Source `json:"source"` // how it is known
	Grant    string         `json:"grant,omitempty"`
	Harmless string         `json:"harmless,omitempty"` // why it is known to do no harm
	Program  string         `json:"program,omitempty"`
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
	home, _ := os.UserHomeDir()  // empty when it is not known
	run, _ := recordedOf(r.Line) // it was read
	d := detail{Run: run, Result: r.Line, Text: explain.Explain(*r, home, ""), Denials: []denied{}}
	for _, one := range r.Denials() {
		d.Denials = append(d.Denials, denied{Op: one.Op, Path: one.Path, Host: one.Addr,
			Text: explain.Operation(one, home), Rule: one.Rule, Source: one.Source,
			Grant: cmp.Or(one.Grant, one.Wider), Harmless: one.Harmless, Program: one.Program})
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
	var found *explain.Record
	for _, dir := range args.AuditDirs(h.env.Env) {
		err := audit.ReadBack(dir, explain.RecordKind, 0, func(l audit.Record) error {
			if l.Bad != "" || found != nil || !bytes.Contains(l.Body, []byte(id)) {
				return nil
			}
			if r, ok := explain.ParseRecord(bytes.Clone(l.Body)); ok && r.Run == id {
				found = &r
				return io.EOF
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if found == nil {
		return nil, console.Refused(wire.CodeInvalidRequest, "no run with this ID is recorded", "unknownRun")
	}
	return found, nil
}
