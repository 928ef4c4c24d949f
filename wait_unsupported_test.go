// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAwaitUnsupported: a wait for what the executor cannot tell is an error at once, before anything
// is typed; waits that did not ask for it wait for their time, and a session that has ended says so.
func TestAwaitUnsupported(t *testing.T) {
	for _, test := range []struct {
		name  string
		until Until
		field string // of the error; empty for none
	}{
		{"input", Until{Input: true}, "Input"},
		{"input without a limit", Until{Input: true, For: -1}, "Input"},
		{"input or a match", Until{Input: true, Match: regexp.MustCompile("x")}, "Input"},
		{"port", Until{Port: true}, "Port"},
		{"port or output", Until{Port: true, FirstOutput: true}, "Port"},
		{"a time on a terminal", Until{For: time.Second}, ""},
		{"nothing", Until{}, ""},
		{"output", Until{FirstOutput: true}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &fakeExecutor{play: func(_ *executor.Spec, p *fakeProcess) { <-p.stopped; p.exit.Stopped = true }}
				r := &Runner{Policy: sandbox.FullAccess(), Executor: e}
				s, err := r.Start(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/", TTY: &Size{}})
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				reply, err := s.Send(t.Context(), []byte("typed"), test.until)
				var refused *UntilError
				switch {
				case test.field == "" && (err != nil || reply.Reason != ReasonDeadline):
					t.Errorf("%+v, %v", reply, err)
				case test.field == "":
				case !errors.As(err, &refused) || refused.Field != test.field || !errors.Is(err, errors.ErrUnsupported) || time.Since(begin) != 0:
					t.Errorf("%v after %v", err, time.Since(begin))
				}
				if _, err := s.Yield(t.Context(), time.Second); err != nil {
					t.Errorf("Yield: %v", err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if reply, err := s.Await(t.Context(), test.until); err != nil || reply.Reason != ReasonExited {
					t.Errorf("after the end: %+v, %v", reply, err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// unsignaled is a process whose executor cannot pass signals on.
type unsignaled struct{ *fakeProcess }

func (unsignaled) Signal(int) error { return errors.ErrUnsupported }

// TestSignalUnsupported: a signal of Cmd.Signals that asks for the end ends a command also where the
// executor cannot pass it on.
func TestSignalUnsupported(t *testing.T) {
	signals := make(chan int)
	p := newFakeProcess()
	a := &attempt{process: unsignaled{p}, stopped: make(chan struct{})}
	release := a.watch(t.Context(), &Cmd{Signals: signals})
	const winch = 28 // it asks for nothing
	for range 2 {
		signals <- winch // the second one is taken when the first one has been passed on
	}
	if why := a.asked(); why != "" {
		t.Errorf("stopped because of %q by a signal that asks for nothing", why)
	}
	signals <- 15
	<-p.stopped
	release()
	if a.asked() != EndCanceled {
		t.Errorf("stopped because of %q", a.asked())
	}
}
