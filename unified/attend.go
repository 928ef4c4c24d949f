// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"time"

	"github.com/sallyport-dev/sallyport/internal/output"
)

// listens reports whether somebody has to attend to processes.
func (t *Tools) listens() bool { return t.Events != nil || t.Watch != nil }

// attend lets events and failures of a process be heard until it has ended: it streams
// the output, watches for failures, and tells the end. The release ends what Watch was
// given.
func (t *Tools) attend(e *entry, failures <-chan string, release func()) {
	defer t.attended.Done()
	defer e.drop()
	exited := make(chan struct{})
	transcript := output.NewBuffer(BufferBytes)
	streamed := make(chan struct{})
	go func() {
		defer close(streamed)
		if t.Events != nil {
			t.stream(e, exited, transcript)
		}
	}()
	if failures != nil {
		go t.watch(e, failures, exited, release)
	} else {
		close(e.settled)
		release()
	}
	end, err := e.process.wait(context.Background())
	close(exited)
	<-streamed
	<-e.settled
	if err != nil {
		t.fail(e, err.Error())
	}
	_ = e.lock(context.Background()) // so that the response that tells the end comes first
	defer e.unlock()
	t.emit(t.ended(e, end, transcript.Drain()))
}

// stream hands the output of a process to the listener.
func (t *Tools) stream(e *entry, exited <-chan struct{}, transcript *output.Buffer) {
	ctx, cancel := untilTrailing(context.Background(), exited)
	defer cancel()
	c := &cutter{size: DeltaBytes, most: MaxDeltas, merged: t.Compatible, emit: func(d Delta) {
		d.CallID, d.SessionID = e.info.CallID, e.info.SessionID
		t.emit(d)
	}}
	c.stream(e.process.pieces(ctx), transcript)
}

// watch ends the process when it is told why.
func (t *Tools) watch(e *entry, failures <-chan string, exited <-chan struct{}, release func()) {
	defer close(e.settled)
	defer release()
	var late <-chan time.Time
	for {
		select {
		case message, ok := <-failures:
			if ok {
				if message == "" {
					message = NetworkDenied
				}
				t.fail(e, message)
				_, _ = e.process.terminate(context.Background()) // the failure is told whatever comes of it
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

// fail notes why a process has failed. The first reason stays.
func (t *Tools) fail(e *entry, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.failure == "" {
		e.failure = message
	}
}

// failure returns why the process has failed, and keeps the output that the asking call
// cannot tell then for the end event.
func (t *Tools) failure(e *entry, collected []byte) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.failure != "" && len(collected) > 0 {
		e.told = collected
	}
	return e.failure
}

// ended makes the end event of a process.
func (t *Tools) ended(e *entry, end *ending, transcript output.Snapshot) End {
	t.mu.Lock()
	failure, told := e.failure, e.told
	t.mu.Unlock()
	event := End{
		CallID: e.info.CallID, SessionID: e.info.SessionID, Status: Completed, Duration: time.Since(e.info.Started),
	}
	if failure != "" {
		event.Status, event.ExitCode = Failed, -1
		event.Output = failedOutput(told, transcript.Render(), failure)
		return event
	}
	event.ExitCode, event.Signal, event.Output = end.code, end.signal, transcript.Render()
	if end.code != 0 {
		event.Status = Failed
	}
	return event
}

// failedOutput is the output of an end event with an error in it: what a call had
// collected, else the transcript, and then the message on a line of its own.
func failedOutput(collected, transcript []byte, message string) []byte {
	out := collected
	if len(out) == 0 {
		out = transcript
	}
	if len(out) == 0 {
		return []byte(message)
	}
	return append(append(append([]byte(nil), out...), '\n'), message...)
}
