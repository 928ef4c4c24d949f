// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// An Audit keeps what happens to processes that clients start. Its methods may be called from several
// goroutines at once.
type Audit interface {
	event.Log
	// Required says that nothing runs whose start is not kept.
	Required() bool
}

// syncTime is how long a process waits until what happened is kept.
const syncTime = 10 * time.Second

// audited keeps the events of one process. The zero value keeps nothing.
type audited struct {
	queue    *records.Queue // nil for none
	required bool
	of       event.Event // the process, without a body
}

// audited returns what keeps the events of a process.
func (s *Server) audited(p *process) audited {
	if s.opts.Audit == nil {
		return audited{}
	}
	return audited{&records.Queue{Log: s.opts.Audit}, s.opts.Audit.Required(),
		event.Event{Run: p.session.id + "/" + p.id, Attempt: 1}}
}

func (a *audited) emit(body event.Body) {
	if a.queue != nil {
		e := a.of
		e.Body = body
		a.queue.Emit(e)
	}
}

// sync waits until everything is kept, and returns why it is not where that is required.
func (a *audited) sync() error {
	if a.queue == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), syncTime)
	defer cancel()
	if err := a.queue.Sync(ctx); err != nil && a.required {
		return fmt.Errorf("the audit log is required and cannot be written: %w", err)
	}
	return nil
}

// begins keeps that a process will be started.
func (a *audited) begins(spec *executor.Spec) *wire.Error {
	a.emit(event.Judged{Args: spec.Args, Dir: spec.Dir, Decision: event.DecisionAllow,
		Reason: "the client decides within the managed configuration"})
	if !a.required {
		return nil
	}
	if err := a.sync(); err != nil {
		return refuse(err.Error())
	}
	return nil
}

// refused keeps that a process was not started.
func (a *audited) refused(w *wire.Start, failure *wire.Error) {
	a.emit(event.Judged{Args: w.Argv, Dir: w.CWD, Decision: event.DecisionForbid})
	a.emit(event.Ended{ExitCode: -1, End: "failed", Error: failure.Message})
}

// runs keeps that a process was started, and confined by what.
func (a *audited) runs(spec *executor.Spec, s executor.Sandbox) {
	a.emit(event.Started{Sandbox: event.Sandbox{Mode: spec.Policy.Name(), Network: spec.Policy.Network(),
		Sandbox: s}})
}

// ended keeps how a process has ended, and returns why that is not kept where it must be. Exit may be nil.
func (a *audited) ended(exit *executor.Exit, err error, took time.Duration) error {
	end := event.Ended{ExitCode: -1, End: "failed", Duration: took}
	if err != nil {
		end.Error = err.Error()
	}
	if exit != nil {
		for _, d := range exit.Denials {
			a.emit(event.Denied{Denial: d})
		}
		if len(exit.Survivors) > 0 {
			a.emit(event.Survived{Survivors: exit.Survivors, By: exit.SurvivorsBy})
		}
		a.emit(event.Exited{Code: exit.Code, Signal: exit.Signal, Survivors: exit.Survivors, Duration: took})
		end.ExitCode, end.End = exit.Code, "exited"
		if exit.Signal != 0 {
			end.End = "signaled"
		}
	}
	a.emit(end)
	return a.sync()
}
