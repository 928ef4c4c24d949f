// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/recordings"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/console"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
)

// machine answers the methods about what is kept on this machine, and what it can enforce.
type machine struct {
	env     *Env
	changes *runs.Changes // of its files
	watch   *listen.QuestionWatch
}

// The parts of machine/read. The member names stay.
type (
	shownMachine struct {
		Build     string               `json:"build"`
		OS        string               `json:"os"`
		OK        bool                 `json:"ok"` // the default sandbox is available
		Level     string               `json:"level"`
		Doctor    []explain.Check      `json:"doctor"`
		Levels    []explain.LevelCheck `json:"levels"`
		Settings  []shownSetting       `json:"settings"`
		Notes     []string             `json:"notes"` // settings that do not count, what cannot be read
		Rules     []shownRules         `json:"rules"`
		Approvals []shownApproval      `json:"approvals"`
		// Version changes with the settings, the rules and what is approved, and with questions.
		Version string `json:"version"`
	}
	shownSetting struct {
		Key    string           `json:"key"`
		Value  any              `json:"value"`
		Origin []*config.Source `json:"origin"` // empty for a default
		Cut    []*config.Source `json:"cut,omitempty"`
	}
	shownRules struct {
		File string `json:"file"`
		Text string `json:"text"`
	}
	shownApproval struct {
		ID    string     `json:"id"`
		What  string     `json:"what"`
		When  *time.Time `json:"when,omitempty"` // missing for a rule
		Scope string     `json:"scope"`          // "session" of a process, or "rule"
	}
)

// read is machine/read. With since it waits for another version.
func (m *machine) read(ctx context.Context, params json.RawMessage) (any, error) {
	var p wire.ListWait
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	var answer shownMachine
	version := await(ctx, &p, func() (string, []<-chan struct{}) {
		files := m.changes.Next()
		asked, changed := m.watch.Version()
		answer = m.configured()
		return digest(answer, asked), []<-chan struct{}{files, changed}
	})
	d := explain.Diagnose(append(explain.Checks(ctx), m.env.Upstream(ctx)), explain.Levels(ctx))
	build := hostfacts.ReadBuild()
	answer.Version, answer.Build, answer.OS = version, build.Version, build.System
	answer.OK, answer.Level, answer.Doctor, answer.Levels = d.OK, d.Level, d.Checks, d.Levels
	list, err := listen.ListQuestions(dirs.DefaultRules(m.env.Variable))
	if err != nil {
		answer.Notes = append(answer.Notes, explain.OneLine(err))
		return answer, nil
	}
	for _, r := range list.Rules {
		answer.Approvals = append(answer.Approvals, shownApproval{ID: r.ID, What: r.Rule, Scope: "rule"})
	}
	for _, s := range list.Session {
		answer.Approvals = append(answer.Approvals,
			shownApproval{s.ID, explain.ShellWords(s.Argv), &s.Time, "session"})
	}
	return answer, nil
}

// digest identifies values.
func digest(of ...any) string {
	text, _ := json.Marshal(of) // plain values always encode
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// await returns the version of what a page shows when it is another one than the page has, or its time is
// over. State returns it, and channels of which one is closed at the next change.
func await(ctx context.Context, p *wire.ListWait, state func() (string, []<-chan struct{})) string {
	ctx, cancel := context.WithTimeout(ctx, waitOf(p))
	defer cancel()
	for {
		version, changed := state()
		if version != p.Since || !runs.Await(ctx, changed) {
			return version
		}
	}
}

// configured returns what settings and rules say.
func (m *machine) configured() shownMachine {
	answer := shownMachine{Settings: []shownSetting{}, Notes: []string{}, Rules: []shownRules{},
		Approvals: []shownApproval{}}
	var run args.Options
	defer run.Close()
	_, e, err := run.Settings(m.env.Env)
	if err != nil {
		answer.Notes = append(answer.Notes, explain.OneLine(err))
		return answer
	}
	shown := e.Show(true)
	answer.Notes = append(answer.Notes, shown.Notes...)
	for _, key := range slices.Sorted(maps.Keys(shown.Values)) {
		v := shown.Values[key]
		answer.Settings = append(answer.Settings,
			shownSetting{key, v.Value, append([]*config.Source{}, v.Origins...), v.Cut})
	}
	for _, r := range e.Rules() {
		answer.Rules = append(answer.Rules, shownRules{r.Name, string(r.Text)})
	}
	return answer
}

// revoke is approval/revoke.
func (m *machine) revoke(_ context.Context, params json.RawMessage) (any, error) {
	rule, err := forget(dirs.DefaultRules(m.env.Variable), params)
	if rule != "" {
		err = args.Note(m.env.Env, args.RulesKind, map[string]any{"action": "revoked", "rule": rule})
	}
	return struct{}{}, err
}

// A shownRecording is a recording in a list. The member names stay.
type shownRecording struct {
	Name     string `json:"name"`
	Started  int64  `json:"startedAtMs,omitempty"`
	Duration int64  `json:"durationMs,omitempty"`
	Bytes    int64  `json:"bytes"`
	Title    string `json:"title"`
}

func (m *machine) store() *recordings.Store {
	var run args.Options
	defer run.Close()
	_, _, _ = run.Settings(m.env.Env) // without settings it is the usual one
	return args.Recordings(&run.Recordings, m.env.Variable("HOME"))
}

// recordings is recording/list. With since it waits for another version.
func (m *machine) recordings(ctx context.Context, params json.RawMessage) (any, error) {
	var p wire.ListWait
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	var list []recordings.Entry
	var err error
	version := await(ctx, &p, func() (string, []<-chan struct{}) {
		changed := []<-chan struct{}{m.changes.Next()}
		list, err = m.store().List()
		return digest(list), changed
	})
	if err != nil {
		return nil, err
	}
	all := []shownRecording{}
	for _, r := range list {
		one := shownRecording{Name: r.Name, Bytes: r.Bytes, Title: r.Header.Title}
		if one.Title == "" {
			one.Title = r.Command
		}
		if !r.Started.IsZero() {
			one.Started, one.Duration = r.Started.UnixMilli(), max(r.Ended.Sub(r.Started).Milliseconds(), 0)
		}
		all = append(all, one)
	}
	return struct {
		Recordings []shownRecording `json:"recordings"`
		Version    string           `json:"version"`
	}{all, version}, nil
}

// maxPart is how many bytes of a file one answer has.
const maxPart = 1 << 20

// recording is recording/read.
func (m *machine) recording(_ context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Name string `json:"name" rule:"need"`
		From int64  `json:"from"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	f, err := m.store().Open(p.Name)
	return partOf(f, err, p.From, console.Refused(wire.CodeNotFound, "no recording has this name",
		"unknownRecording"))
}

// partOf answers with a part of a file that was opened, and closes it; unknown is for one that is not there.
func partOf(f *os.File, err error, from int64, unknown *wire.Error) (any, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	part, err := io.ReadAll(io.NewSectionReader(f, max(from, 0), maxPart))
	if err != nil {
		return nil, err
	}
	return struct {
		Part  []byte `json:"part"`
		Bytes int64  `json:"bytesTotal"`
	}{part, info.Size()}, nil
}
