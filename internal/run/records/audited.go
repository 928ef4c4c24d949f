// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
)

// A ServerLog keeps what happens to processes that clients of a server start. Its methods may be called from
// several goroutines at once.
type ServerLog interface {
	event.Log
	// Required says that nothing runs whose start is not kept.
	Required() bool
	// Note keeps what was done that is no run: kind is a word of lower case letters. It blocks until it is
	// kept; the error is that of a required log.
	Note(kind string, body map[string]any) error
}

// syncTime is how long a process waits until what happened is kept.
const syncTime = 10 * time.Second

// An Audited keeps the events of one process that has no Runner. The zero Audited keeps nothing.
type Audited struct {
	queue    *Queue // nil for none
	required bool
	of       event.Event // the process, without a body
}

// NewAudited returns what keeps the events of a process, which has an ID; a nil log keeps nothing.
func NewAudited(log ServerLog, id string) Audited {
	if log == nil {
		return Audited{}
	}
	return Audited{&Queue{Log: log}, log.Required(), event.Event{Run: id, Attempt: 1}}
}

// Keeps reports whether it keeps anything.
func (a *Audited) Keeps() bool { return a.queue != nil }

func (a *Audited) emit(body event.Body) {
	if a.queue != nil {
		e := a.of
		e.Body = body
		a.queue.Emit(e)
	}
}

// sync waits until everything is kept, and returns why it is not where that is required.
func (a *Audited) sync() error {
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

// Begins keeps that a process will be started, and returns why it must not be.
func (a *Audited) Begins(spec *executor.Spec) error {
	a.emit(event.Judged{Args: spec.Args, Dir: spec.Dir, Decision: event.DecisionAllow,
		Reason: "the client decides within the managed configuration"})
	if !a.required {
		return nil
	}
	return a.sync()
}

// Refused keeps that a process was not started, and why.
func (a *Audited) Refused(args []string, dir, why string) {
	a.emit(event.Judged{Args: args, Dir: dir, Decision: event.DecisionForbid})
	a.emit(event.Ended{ExitCode: -1, End: "failed", Error: why})
}

// Runs keeps that a process was started, and confined by what.
func (a *Audited) Runs(spec *executor.Spec, s executor.Sandbox) {
	a.emit(event.Started{Sandbox: event.Sandbox{Mode: spec.Policy.Name(), Network: spec.Policy.Network(),
		Sandbox: s}})
}

// Ended keeps how a process has ended, and returns why that is not kept where it must be. Exit may be nil.
func (a *Audited) Ended(exit *executor.Exit, err error, took time.Duration) error {
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
