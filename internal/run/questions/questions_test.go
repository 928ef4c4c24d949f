// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package questions

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
)

// A scripted command has questions whose answers come from a channel.
type scripted struct {
	Command
	asked   atomic.Int32
	answers chan approval.Decision
	got     chan result
}

type result struct {
	d   approval.Decision
	err error
}

func newScripted() *scripted {
	return &scripted{Command: Command{Limit: new(Limit)}, answers: make(chan approval.Decision),
		got: make(chan result, 100)}
}

// wants asks a question in the background, and returns when all goroutines wait.
func (s *scripted) wants(ctx context.Context, subject string, serial bool) {
	go func() {
		d, err := s.Ask(ctx, &Question{Subject: subject, Time: time.Minute, Serial: serial,
			Put: func(ctx context.Context) (approval.Decision, error) {
				s.asked.Add(1)
				select {
				case d := <-s.answers:
					return d, nil
				case <-ctx.Done():
					return approval.Decision{}, errors.New("no answer")
				}
			},
			Keeps: func(d approval.Decision) bool { return !d.Approves() },
		})
		s.got <- result{d, err}
	}()
	synctest.Wait()
}

// TestSerial: one serial question is open at a time; equal ones share an answer, and an approval is for those
// who wait only, while a denial is kept.
func TestSerial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.Close()
		for _, subject := range []string{"a", "a", "b", "a"} {
			s.wants(t.Context(), subject, true)
		}
		if n := s.asked.Load(); n != 1 {
			t.Fatalf("%d questions are open", n)
		}
		s.answers <- approval.Decision{Answer: approval.Approved}
		for range 3 {
			if r := <-s.got; r.err != nil || !r.d.Approves() {
				t.Errorf("%+v", r)
			}
		}
		synctest.Wait()
		s.answers <- approval.Decision{Answer: approval.Denied}
		if r := <-s.got; r.err != nil || r.d.Approves() || s.asked.Load() != 2 {
			t.Errorf("%+v after %d questions", r, s.asked.Load())
		}
		s.wants(t.Context(), "b", true)
		if r := <-s.got; r.err != nil || r.d.Approves() || s.asked.Load() != 2 {
			t.Errorf("denied before: %+v after %d questions", r, s.asked.Load())
		}
		s.wants(t.Context(), "a", true)
		s.answers <- approval.Decision{Answer: approval.Approved}
		if r := <-s.got; r.err != nil || !r.d.Approves() || s.asked.Load() != 3 {
			t.Errorf("approved before: %+v after %d questions", r, s.asked.Load())
		}
	})
}

// TestInterrupt: a signal withdraws the question that a call waits for, and no other.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.Close()
		s.Interrupt() // nothing is open
		s.wants(t.Context(), "a", true)
		s.wants(t.Context(), "b", false)
		s.Interrupt()
		if r := <-s.got; !errors.Is(r.err, errSignal) {
			t.Errorf("%+v", r)
		}
		s.answers <- approval.Decision{Answer: approval.Approved}
		if r := <-s.got; r.err != nil || !r.d.Approves() {
			t.Errorf("%+v", r)
		}
	})
}

// TestInterruptedAsksAnew: who waited for a question that a signal withdrew takes nothing from the next one
// about the subject.
func TestInterruptedAsksAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.Close()
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // its question does not end at once
			d, err := s.Ask(ctx, &Question{Subject: "a", Time: time.Minute, Serial: true,
				Put: func(context.Context) (approval.Decision, error) {
					<-release
					return approval.Decision{}, errors.New("no answer")
				}})
			s.got <- result{d, err}
		}()
		synctest.Wait()
		s.Interrupt()
		s.wants(t.Context(), "a", true)
		cancel()
		<-s.got
		s.wants(t.Context(), "a", true)
		close(release)
		synctest.Wait()
		if n := s.asked.Load(); n != 1 {
			t.Errorf("%d questions", n)
		}
		s.answers <- approval.Decision{Answer: approval.Approved}
		for range 2 {
			if r := <-s.got; r.err != nil || !r.d.Approves() {
				t.Errorf("%+v", r)
			}
		}
		if n := s.asked.Load(); n != 1 {
			t.Errorf("%d questions", n)
		}
	})
}

// TestLeft: a serial question is withdrawn when nothing waits for it any more; another one stays open.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		s.wants(ctx, "a", true)
		s.wants(t.Context(), "b", true)
		cancel()
		if r := <-s.got; !errors.Is(r.err, context.Canceled) {
			t.Errorf("%+v", r)
		}
		synctest.Wait()
		if n := s.asked.Load(); n != 2 {
			t.Fatalf("the next question is not open: %d", n)
		}
		s.answers <- approval.Decision{Answer: approval.Approved}
		if r := <-s.got; r.err != nil || !r.d.Approves() {
			t.Errorf("%+v", r)
		}
		other, leave := context.WithCancel(t.Context())
		s.wants(other, "c", false)
		leave()
		<-s.got
		s.wants(t.Context(), "c", false)
		s.answers <- approval.Decision{Answer: approval.Approved}
		if r := <-s.got; r.err != nil || !r.d.Approves() || s.asked.Load() != 3 {
			t.Errorf("%+v after %d questions", r, s.asked.Load())
		}
	})
}

// TestTime: a question that no one answers ends, and its time begins with its turn.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		defer s.Close()
		start := time.Now()
		s.wants(t.Context(), "a", true)
		s.wants(t.Context(), "b", true)
		for i := range 2 {
			if r := <-s.got; !errors.Is(r.err, ErrTime) ||
				time.Since(start) != time.Duration(i+1)*time.Minute {
				t.Errorf("%+v after %v", r, time.Since(start))
			}
		}
	})
}

// TestClose: the end of the command withdraws its questions; later ones are not asked.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScripted()
		var open []bool
		s.Open = func(on bool) { open = append(open, on) }
		s.wants(t.Context(), "a", false)
		s.wants(t.Context(), "b", true)
		s.wants(t.Context(), "c", true)
		s.Close()
		for range 3 {
			if r := <-s.got; r.err == nil || errors.Is(r.err, ErrTime) {
				t.Errorf("%+v", r)
			}
		}
		s.wants(t.Context(), "late", true)
		if r := <-s.got; !errors.Is(r.err, ErrClosed) || s.asked.Load() != 2 {
			t.Errorf("%+v, %d questions", r, s.asked.Load())
		}
		if len(open) != 2 || !open[0] || open[1] {
			t.Errorf("open %v", open)
		}
		if n := s.Limit.open.Load(); n != 0 {
			t.Errorf("%d questions are counted still", n)
		}
	})
}

// TestBounds: a command has 8 open questions, all commands together 32; what is above is refused at once.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit Limit
		var commands []*scripted
		many := 0
		for i := range 5 {
			s := newScripted()
			s.Limit = &limit
			commands = append(commands, s)
			for j := range commandQuestions + 1 {
				s.wants(t.Context(), fmt.Sprint(i, j), false)
			}
			for len(s.got) > 0 {
				if r := <-s.got; errors.Is(r.err, ErrTooMany) {
					many++
				}
			}
		}
		if asked := 5*(commandQuestions+1) - many; asked != allQuestions {
			t.Errorf("%d questions, %d refused", asked, many)
		}
		for _, s := range commands {
			s.Close()
		}
	})
}
