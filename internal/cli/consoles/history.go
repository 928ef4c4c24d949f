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
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/server/console"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// history answers the methods about recorded runs.
type history struct {
	env     *Env
	changes runs.Changes  // of the logs
	ready   chan struct{} // closed when the runs were counted once; nil if they are not

	mu      sync.Mutex
	counted map[string]tally // by the oldest file of the log
}

// A tally is how many runs a log has up to a line.
type tally struct {
	line uint64
	runs int
}

// follow follows the logs, the recordings and the settings, and counts the runs, until end is called.
func (h *history) follow() (end func(), err error) {
	log, _ := audit.DefaultDir() // without a state directory there is nothing to see
	recorded, _ := (&machine{env: h.env}).store().Path()
	for _, dir := range []string{log, recorded} {
		if root, err := safefile.MakeDirs(dir); err == nil { // else the first one of all is not told
			_ = root.Close()
		}
	}
	user, _ := dirs.Config(h.env.Variable) // empty where there is none
	fixed := []string{recorded, filepath.Dir(user), filepath.Join(filepath.Dir(log), "trust"),
		filepath.Join(h.env.Dir, ".sallyport"), filepath.Join(h.env.Managed, "managed.d")}
	for _, dir := range []string{user, h.env.Managed} {
		fixed = append(fixed, dir, filepath.Join(dir, "rules"))
	}
	fixed = slices.DeleteFunc(fixed, func(dir string) bool { return !filepath.IsAbs(dir) })
	stop, err := dirs.Watch(func() []string { return append(args.AuditDirs(h.env.Env), fixed...) },
		h.changes.Tell)
	if err != nil {
		return nil, err
	}
	h.ready = make(chan struct{})
	go func() {
		h.count()
		close(h.ready)
		h.changes.Tell()
	}()
	return func() {
		stop()
		<-h.ready
	}, nil
}

// count returns how many runs the logs have. After the first time it reads only what is new.
func (h *history) count() (all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.counted
	h.counted = map[string]tally{}
	for _, dir := range args.AuditDirs(h.env.Env) {
		files, err := audit.Files(dir)
		if err != nil || len(files) == 0 {
			continue // what cannot be read is an error of the list
		}
		t := before[files[0]]
		last := t.line
		_ = audit.ReadBack(dir, explain.RecordKind, 0, func(l audit.Record) error { // likewise
			if l.N <= last {
				return io.EOF
			}
			t.line, t.runs = max(t.line, l.N), t.runs+1
			return nil
		})
		h.counted[files[0]] = t
		all += t.runs
	}
	return all
}

// isReady reports whether counting is fast.
func (h *history) isReady() bool {
	select {
	case <-h.ready:
		return true
	default:
		return false
	}
}

// version identifies the newest run of each log.
func (h *history) version() string {
	newest := fmt.Sprint(h.isReady())
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

// A historyPage is the result of history/list. The member names stay.
type historyPage struct {
	Runs    []recorded `json:"runs"`
	Next    string     `json:"next,omitempty"`  // for before; empty at the end
	Total   int        `json:"total,omitempty"` // missing until it is known, and for a search
	Version string     `json:"version"`
}

// list is history/list: the runs that ended last first, from behind a place on. With since it waits for
// another version.
func (h *history) list(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Before string `json:"before"` // as the number of a log, of a line in it, and of runs up to there
		Search string `json:"search"`
		Limit  int    `json:"limit"`
		wire.ListWait
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	from, before, seen := 0, uint64(0), 0
	if _, err := fmt.Sscanf(p.Before, "%d.%d.%d", &from, &before, &seen); p.Before != "" && err != nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "before is not that of an answer"}
	}
	const usual, largest = 100, 500
	limit := min(cmp.Or(max(p.Limit, 0), usual), largest)
	page := historyPage{Runs: []recorded{}}
	page.Version = await(ctx, &p.ListWait, func() (string, []<-chan struct{}) {
		changed := []<-chan struct{}{h.changes.Next()}
		return h.version(), changed
	})
	last, most := "", args.ShownRuns(h.env.Env)
	if p.Search == "" && h.isReady() {
		page.Total = min(h.count(), most)
	}
	err := h.back(ctx, from, before, func(log int, line uint64, r recorded) error {
		if seen >= most {
			return io.EOF
		}
		found := r.matches(p.Search)
		if found && len(page.Runs) == limit {
			page.Next = last
			return io.EOF
		}
		seen++
		last = fmt.Sprintf("%d.%d.%d", log, line, seen)
		if found {
			page.Runs = append(page.Runs, r)
		}
		return nil
	})
	return page, err
}

// back calls yield with recorded runs, the newest first, from behind a line of a log on; there may be several
// logs, one after the other. [io.EOF] ends it without an error.
func (h *history) back(ctx context.Context, from int, before uint64,
	yield func(log int, line uint64, r recorded) error) error {
	for i, dir := range args.AuditDirs(h.env.Env) {
		if i < from {
			continue
		}
		ended := false
		err := audit.ReadBack(dir, explain.RecordKind, before, func(l audit.Record) error {
			r, ok := recordedOf(l.Body)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case l.Bad != "" || !ok:
				return nil
			}
			err := yield(i, l.N, r)
			ended = err != nil
			return err
		})
		if ended || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		before = 0
	}
	return nil
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

// output is history/output.
func (h *history) output(_ context.Context, params json.RawMessage) (any, error) {
	var p struct {
		ID   string `json:"id" rule:"need"`
		From int64  `json:"from"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	set, _ := args.AuditSettings(h.env.Env) // what was kept is read, whatever is from now on
	store, err := args.RunOutput(&set)
	if err != nil {
		return nil, err
	}
	f, err := store.Open(p.ID)
	return partOf(f, err, p.From, console.Refused(wire.CodeNotFound, "no output of this run is kept",
		"unknownOutput"))
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
