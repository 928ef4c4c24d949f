// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// attend follows a process to its end: it streams the output, watches for failures, and
// tells the end. The release ends the context of Watch.
func (t *Tools) attend(e *entry, failures <-chan string, release func()) {
	defer t.work.Done()
	defer close(e.attended)
	exited := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { t.stream(e) })
	beside.Go(func() {
		defer close(e.settled)
		defer release()
		if failures != nil {
			t.watch(e, failures, exited)
		}
	})
	r, err := resultOf(context.Background(), e.session)
	close(exited)
	beside.Wait()
	if err != nil {
		t.fail(e, err.Error())
	}
	_ = e.lock(context.Background()) // the response that tells the end comes first
	defer e.unlock()
	t.emit(t.ended(e, r))
}

// stream passes the output of a process to the listener.
func (t *Tools) stream(e *entry) {
	if t.Events == nil {
		return
	}
	c := &cutter{size: deltaBytes, most: maxDeltas, merged: t.Compatible, emit: func(d Delta) {
		d.CallID, d.SessionID = e.info.CallID, e.info.SessionID
		t.emit(d)
	}}
	for d, err := range e.session.Deltas(context.Background(), 0) {
		if err == nil {
			c.push(d)
		}
	}
	c.close()
}

// watch ends the process when a failure is told.
func (t *Tools) watch(e *entry, failures <-chan string, exited <-chan struct{}) {
	var late <-chan time.Time
	for {
		select {
		case message, ok := <-failures:
			if ok {
				if message == "" {
					message = NetworkDenied
				}
				t.fail(e, message)
				_, _ = terminate(context.Background(), e.session) // the failure is told in any case
			}
			return
		case <-exited:
			exited = nil
			timer := time.NewTimer(denialGrace)
			defer timer.Stop()
			late = timer.C
		case <-late:
			return
		}
	}
}

// fail records why a process has failed. The first reason stays.
func (t *Tools) fail(e *entry, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.failure == "" {
		e.failure = message
	}
}

// failure returns why the process has failed, and keeps the output that the call has
// collected for the End event.
func (t *Tools) failure(e *entry, collected []byte) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.failure != "" && len(collected) > 0 {
		e.told = collected
	}
	return e.failure
}

// ended returns the End event of a process; r is nil if its end is not known.
func (t *Tools) ended(e *entry, r *sallyport.Result) End {
	t.mu.Lock()
	failure, told := e.failure, e.told
	t.mu.Unlock()
	event := End{
		CallID: e.info.CallID, SessionID: e.info.SessionID, Status: Completed,
		Duration: time.Since(e.info.Started),
	}
	if r != nil {
		event.Output = snapshotOf(r.Output).Render()
		event.ExitCode, event.Signal = r.ExitCode, r.Signal
	}
	switch {
	case failure != "":
		event.Status, event.ExitCode, event.Signal = Failed, -1, 0
		event.Output = failedOutput(told, event.Output, failure)
	case event.ExitCode != 0:
		event.Status = Failed
	}
	return event
}

// failedOutput returns the output of an End event with an error: the output that a call
// has collected, otherwise all output, and then the message on a line of its own.
func failedOutput(collected, all []byte, message string) []byte {
	out := collected
	if len(out) == 0 {
		out = all
	}
	if len(out) == 0 {
		return []byte(message)
	}
	return bytes.Join([][]byte{out, []byte(message)}, []byte{'\n'})
}
