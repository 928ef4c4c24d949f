// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/recordings"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// auditName is the name of the directory of the log in the state directory.
const auditName = "audit"

// auditTime is how long a record may take until it is kept.
const auditTime = 10 * time.Second

// An Audit is the audit log of this process. It is opened at its first use, and again after an error. The
// nil Audit keeps nothing. Its methods may be called from several goroutines at once.
type Audit struct {
	set      config.Audit
	required bool
	err      error // of the settings

	mu  sync.Mutex
	log *audit.Log // nil before it is open
	dir string
}

// NewAudit returns the log that settings describe. Required is for settings that do not say whether it is.
func NewAudit(set config.Audit, required bool) *Audit {
	a := &Audit{set: set, required: required && set.Path != config.AuditOff}
	if set.Required != nil {
		a.required = *set.Required
	}
	return a
}

// ServerAudit returns the log of a server, which is required unless settings say no. They are those of its
// own environment: what its clients set for their runs does not count.
func ServerAudit(env *Env) *Audit {
	set, err := AuditSettings(env)
	a := NewAudit(set, true)
	if a.err = err; err != nil {
		a.required = true
	}
	return a
}

// AuditSettings returns what the settings of the machine and the user say about the log.
func AuditSettings(env *Env) (config.Audit, error) {
	in := config.Input{Managed: env.Managed, Dir: "/", Home: env.Variable("HOME"), Environ: env.Environ,
		Account: grants.DatabaseHome}
	in.User, _ = dirs.Config(env.Variable) // empty where there is none
	if file := env.Variable(FileVariable); file != "" {
		in.File = Absolute(file, env.Dir, in.Home)
	}
	var run config.Run
	c, err := config.Load(in)
	if err != nil {
		return run.Audit, err
	}
	e, err := c.Resolve(nil)
	if err != nil {
		return run.Audit, err
	}
	run.Apply(e)
	return run.Audit, nil
}

// defaultRuns is how many ended runs are shown where no setting says so.
const defaultRuns = 10_000

// ShownRuns is how many ended runs are shown at most.
func ShownRuns(env *Env) int {
	set, _ := AuditSettings(env) // without settings it is the default
	return cmp.Or(set.Runs, defaultRuns)
}

// RunOutput returns what has the output of ended runs, as far as settings keep it.
func RunOutput(set *config.Audit) (*recordings.Store, error) {
	state, err := dirs.Dir()
	return recordings.Outputs(filepath.Join(state, "output"), cmp.Or(set.Runs, defaultRuns), set.Output), err
}

// AuditDirs returns where logs are, with the settings of the machine and the user: one directory, or those of
// all state directories that have one.
func AuditDirs(env *Env) []string {
	set, err := AuditSettings(env)
	if err == nil && filepath.IsAbs(auditPath(env, set.Path)) {
		return []string{auditPath(env, set.Path)}
	}
	var all []string
	for _, dir := range dirs.Existing() {
		dir = filepath.Join(dir, auditName)
		if _, err := os.Lstat(dir); err == nil {
			all = append(all, dir)
		}
	}
	return all
}

func auditPath(env *Env, path string) string { return config.Expand(path, env.Variable("HOME")) }

// own reports whether the log is in the state directory, which commands neither see nor change.
func (a *Audit) own() bool { return a.set.Path == "" || a.set.Path == config.AuditState }

// errAuditOff is why there is no log where one is required.
var errAuditOff = errors.New("audit.path is off; set it to a directory")

// open returns the log; nil without an error where there is none and none is wanted.
func (a *Audit) open() (*audit.Log, error) {
	if a == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.err != nil || a.log != nil:
		return a.log, a.err
	case a.set.Path == config.AuditOff && a.required:
		return nil, errAuditOff
	case a.set.Path == config.AuditOff:
		return nil, nil //nolint:nilnil // there is none
	}
	dir := config.Expand(a.set.Path, os.Getenv("HOME"))
	if a.own() {
		state, err := dirs.Dir()
		switch {
		case errors.Is(err, errors.ErrUnsupported) && (a.set.Required == nil || !*a.set.Required):
			return nil, nil //nolint:nilnil // this system has none
		case err != nil:
			return nil, err
		}
		dir = filepath.Join(state, auditName)
	}
	log, err := audit.Open(audit.Options{Dir: dir, KeyFile: config.Expand(a.set.KeyFile, os.Getenv("HOME")),
		MaxAge: a.set.Retention, Sync: a.set.Sync, Mask: maskEvent})
	if err != nil {
		return nil, err
	}
	a.log, a.dir = log, dir
	return log, nil
}

// needed is an error of the log that ends a run; nil where the log is not required.
func (a *Audit) needed(err error) error {
	if err == nil || a == nil || !a.required {
		return nil
	}
	return &sallyport.AuditError{Err: err}
}

// Attach has a Runner keep what happens, and its commands neither see nor change the log. In is what commands
// can change. What was approved for the session, and is revoked by post, is kept as well. The end of a run is
// kept by [Audit.Record], not before.
func (a *Audit) Attach(r *sallyport.Runner, post *listen.QuestionServer, in reach.Area) error {
	log, err := a.open()
	if err != nil || log == nil {
		return a.needed(err)
	}
	if !a.own() || a.set.KeyFile != "" {
		for by, name := range map[string]string{"audit.path": a.dir,
			"audit.checkpoint_key_file": a.set.KeyFile} {
			if name = config.Expand(name, os.Getenv("HOME")); name == "" {
				continue
			}
			if err := reach.New(in).Decides(by, name); err != nil {
				return err
			}
			if r.Policy.Mode() == sandbox.Managed {
				r.Policy = r.Policy.WithEntries(sandbox.PathEntry(name, sandbox.LevelDeny))
			}
		}
	}
	r.Audit, r.AuditRequired = &runLog{Log: log}, a.required
	if remember := r.Remember; remember != nil {
		r.Remember = func(prefix []string, line string) error {
			err := remember(prefix, line)
			if err == nil {
				body, _ := json.Marshal(map[string]string{"action": "remembered", "rule": line})
				_ = log.Append(RulesKind, body) // neither fails: a word, and an object of strings
			}
			return err
		}
	}
	revoke := post.Revoke
	post.Revoke = func(id string) error {
		err := revoke(id)
		if err == nil {
			err = a.Note(RulesKind, map[string]any{"action": "revoked", "approval": id})
		}
		return err
	}
	return nil
}

// hidden returns the paths that commands must not see, where they do not know the state directory.
func (a *Audit) hidden() []string {
	_, _ = a.open() // where there is none yet, there is nothing to hide
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.own() || a.dir == "" {
		return nil
	}
	return []string{a.dir}
}

// Required implements records.ServerLog.
func (a *Audit) Required() bool { return a.required }

// Emit implements event.Log. What comes before the log can be opened is missing, and Sync says so.
func (a *Audit) Emit(e event.Event) {
	if log, _ := a.open(); log != nil {
		log.Emit(e)
	}
}

// Sync implements event.Log.
func (a *Audit) Sync(ctx context.Context) error {
	log, err := a.open()
	if err != nil || log == nil {
		return err
	}
	return log.Sync(ctx)
}

// A runLog is the log for the events of one run. Once it has ended Sync waits for nothing: the record of the
// run follows, and both are written at once.
type runLog struct {
	*audit.Log
	ended atomic.Bool
}

// Emit implements event.Sink.
func (l *runLog) Emit(e event.Event) {
	if _, ok := e.Body.(event.Ended); ok {
		l.ended.Store(true)
	}
	l.Log.Emit(e)
}

// Sync implements event.Log.
func (l *runLog) Sync(ctx context.Context) error {
	if l.ended.Load() {
		return nil
	}
	return l.Log.Sync(ctx)
}

// Record keeps the record of a run, and everything before it, and of its output what the Result has, if the
// settings keep any. Failed says that the error is one of the run.
func (a *Audit) Record(r explain.Record) (failed bool, err error) {
	body, err := r.Body()
	var lost error
	if err == nil {
		lost = a.keepOutput(&r) // first: who is told of the run finds it
		err = a.keep(explain.RecordKind, body)
	}
	if need := a.needed(err); need != nil {
		return true, need
	}
	return false, errors.Join(err, lost)
}

func (a *Audit) keepOutput(r *explain.Record) error {
	if a == nil || a.set.Output == 0 || r.Output.Total == 0 {
		return nil
	}
	if log, err := a.open(); log == nil || err != nil {
		return nil //nolint:nilerr // nothing knows the run; keep says why
	}
	to, err := RunOutput(&a.set)
	if err == nil {
		err = to.Keep(r.Run, environ.MaskText(r.Output.Plain()))
	}
	if err != nil {
		return fmt.Errorf("its output is not kept: %w", err)
	}
	return nil
}

// RulesKind is the kind of records about what is allowed from now on, or no more.
const RulesKind = "rules"

// Note implements records.ServerLog: it keeps what was done that is no run. The kind is a word. The error is
// that of a required log.
func (a *Audit) Note(kind string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err == nil {
		err = a.keep(kind, text)
	}
	return a.needed(err)
}

// Note keeps what a command of the user did that is no run, in the log that the settings of the machine and
// the user name: see [Audit.Note]. It is called once it is done.
func Note(env *Env, kind string, body map[string]any) error {
	set, err := AuditSettings(env)
	a := NewAudit(set, false)
	a.err = err
	return cmp.Or(a.Note(kind, body), a.needed(a.Close()))
}

// keep appends a record and waits until it is kept.
func (a *Audit) keep(kind string, body json.RawMessage) error {
	log, err := a.open()
	if err != nil || log == nil {
		return err
	}
	if err := log.Append(kind, body); err != nil {
		return err
	}
	return a.sync()
}

// sync waits until everything is kept, but not forever.
func (a *Audit) sync() error {
	if a == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), auditTime)
	defer cancel()
	return a.Sync(ctx)
}

// Close closes the log.
func (a *Audit) Close() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.log == nil {
		return nil
	}
	log := a.log
	a.log = nil
	return log.Close()
}
