// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/run/durable"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// ofRun is the kind of the records of runs.
const ofRun = "run"

// save writes the output of a run to a log, until its end. The function that it returns waits for that, and
// adds the result.
func (r *Run) save() (ended func(*sallyport.Result)) {
	if r.table.Durable == nil || r.transient || r.left != nil {
		return func(*sallyport.Result) {}
	}
	info := r.session.Info()
	r.saved = r.table.Durable.Create(durable.Record{Kind: ofRun, Credential: r.owner, ID: r.id,
		Argv: info.Args, Dir: info.Dir, TTY: info.TTY, Started: info.Started})
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		for d, err := range r.session.Deltas(context.Background(), 0) {
			if err != nil {
				return
			}
			r.saved.Write(durable.Frame{Kind: durable.Output, Stream: byte(d.Stream), Number: d.Offset,
				Data: d.Data})
		}
	}()
	return func(res *sallyport.Result) {
		<-copied
		text, _ := WithoutOutput(res).MarshalJSON() // it always encodes
		r.saved.Write(durable.Frame{Kind: durable.End, Data: text})
	}
}

// forgetSaved has the next process not know the run either.
func (r *Run) forgetSaved() {
	r.saved.Remove()
	if r.left != nil {
		r.left.Remove()
	}
}

// Restore has an owner know the runs that a process before this one has left in Durable: each has the output
// that is left, and the result that it had, or was lost. It blocks while they are read.
func (t *Table) Restore(owner string) {
	t.restoring.Lock()
	defer t.restoring.Unlock()
	for _, l := range t.Durable.Left() {
		if l.Kind != ofRun || l.Credential != owner {
			continue
		}
		if _, known := t.known(owner, l.ID); !known {
			t.restore(l)
		}
	}
}

// restore makes a run of a log. Its command is one of an executor that has only the log.
func (t *Table) restore(l *durable.Left) {
	r := &Run{table: t, owner: l.Credential, id: l.ID, left: l, begun: make(chan struct{}),
		done: make(chan struct{})}
	r.life, r.cancel = context.WithCancel(t.life)
	defer r.cancel()
	if t.claim(r) != nil {
		return
	}
	e := &replay{left: l}
	c := &sallyport.Cmd{Args: l.Argv, Dir: l.Dir}
	if l.TTY {
		c.TTY = new(sallyport.Size)
	}
	r.prepared = &Prepared{Cmd: c, Close: func() { _ = e.logs.Close() },
		Runner: &sallyport.Runner{Policy: sandbox.FullAccess(), Executor: e}}
	t.begins(r, &Info{Starting: true, SessionInfo: sallyport.SessionInfo{ID: r.id, Args: l.Argv, Dir: l.Dir,
		TTY: l.TTY, Started: l.Started, LastUsed: l.Started}})
	var err error
	if r.session, err = r.prepared.Runner.Start(r.life, c); err != nil {
		r.session = nil
		r.prepared.close()
		t.release(r)
		return
	}
	r.input = process.NewInputQueue(func() process.InputTaker { return r.session }, l.TTY, 0)
	r.restored = &e.result
	if t.settle(r) {
		r.follow()
		return
	}
	r.follow()
	r.free()
}

// A replay is the executor of a run of which only a log is left.
type replay struct {
	left   *durable.Left
	logs   dirs.Logs
	result sallyport.Result // has an End if there is one; written before the end of the process
}

func (e *replay) Start(_ context.Context, spec *executor.Spec) (executor.Process, error) {
	log, _ := spec.Retain.After.(*output.Log)
	if log == nil {
		log = e.logs.New(spec.Retain)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.left.Read(func(f durable.Frame) { // what cannot be read is missing
			switch {
			case f.Kind == durable.End:
				_ = json.Unmarshal(f.Data, &e.result) // else it was lost
			case f.Kind == durable.Output && len(f.Data) > 0:
				log.Write(executor.Stream(f.Stream), f.Data)
				spec.OnOutput(executor.Stream(f.Stream), f.Data)
			}
		})
		if !spec.Retain.Open {
			log.End()
		}
	}()
	return &durable.Ended{Log: log, Box: executor.Sandbox{Level: e.left.Level}, Exit: executor.Exit{Code: -1},
		Err: new(executor.LostError), Done: done}, nil
}

func (e *replay) Host(context.Context) (executor.HostInfo, error) {
	return executor.HostInfo{}, errors.ErrUnsupported
}

func (e *replay) Places(context.Context, string, []string, string) (sandbox.Places, error) {
	return sandbox.Places{}, errors.ErrUnsupported
}

func (e *replay) Shell(context.Context, string, string, bool) ([]string, error) {
	return nil, errors.ErrUnsupported
}
