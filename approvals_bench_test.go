// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// BenchmarkAuthorize is what questions add to a run that needs none. Claim: at most 3 % of a
// sandboxed /bin/true, which takes some milliseconds.
func BenchmarkAuthorize(b *testing.B) {
	r, _ := fakeRunner(nil, nil)
	r.Approver = answering(approval.Denied)
	x, err := r.newExecution(b.Context(), &Cmd{Args: []string{"/bin/true"}, Dir: "/w"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := x.authorize(b.Context(), x.judge()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAnswerToStart is the time from an answer on the Board to the start of the command, with
// its identity looked at again: until the executor is called, and until the command runs in a
// sandbox. Claim: at most 2 ms (median) until the executor is called; the rest is a start.
func BenchmarkAnswerToStart(b *testing.B) {
	b.Run("called", func(b *testing.B) {
		started := make(chan time.Time, 1)
		r, e := fakeRunner(nil, func(*executor.Spec, *fakeProcess) {})
		r.Executor = &startHook{e, 0, func(context.Context, int) error { started <- time.Now(); return nil }}
		answerToStart(b, r, started)
	})
	b.Run("sandboxed", func(b *testing.B) {
		testenv.NeedUserNS(b)
		started := make(chan time.Time, 1)
		answerToStart(b, &Runner{Policy: sandbox.WorkspaceWrite("."), Events: event.SinkFunc(func(e event.Event) {
			if _, ok := e.Body.(event.Started); ok {
				started <- e.Time
			}
		})}, started)
	})
}

func answerToStart(b *testing.B, r *Runner, started <-chan time.Time) {
	board := new(approval.Board)
	r.Approver, r.Approval = board, approval.Untrusted
	dir := b.TempDir()
	var took []time.Duration
	for b.Loop() {
		done := make(chan error)
		go func() {
			_, err := r.Run(b.Context(), &Cmd{Args: []string{"/bin/true"}, Dir: dir})
			done <- err
		}()
		for changed := board.Changed(); len(board.Pending()) == 0; changed = board.Changed() {
			<-changed
		}
		answered := time.Now()
		if err := board.Answer(board.Pending()[0].ID, approval.Decision{Answer: approval.Approved}); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-started).Sub(answered))
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms(p50)")
}
