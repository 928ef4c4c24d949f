// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A stream is output and input at given times.
type stream struct {
	mu      sync.Mutex
	last    time.Time
	changed chan struct{}
}

func (s *stream) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) lastTouch() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *stream) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// TestAwaitTimes checks at which times after the start Await looks.
func TestAwaitTimes(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name   string
		touch  []time.Duration // output after the start
		before bool            // there was output at the start
		closed bool            // the notice is that of an ended stream
		deaf   bool            // there is no notice
		until  time.Duration   // the answer is yes from then on
		want   []time.Duration
	}{
		{name: "quiet", before: true, until: 220 * ms, want: []time.Duration{5 * ms, 15 * ms, 35 * ms, 75 * ms, 125 * ms, 175 * ms, 225 * ms}},
		{name: "no output ever", until: 100 * ms, want: []time.Duration{0, 10 * ms, 30 * ms, 70 * ms, 120 * ms}},
		{name: "output starts again", before: true, touch: []time.Duration{40 * ms}, until: 50 * ms, want: []time.Duration{5 * ms, 15 * ms, 35 * ms, 45 * ms, 55 * ms}},
		{name: "output puts it off", before: true, touch: []time.Duration{2 * ms, 4 * ms, 8 * ms, 12 * ms}, want: []time.Duration{17 * ms}},
		{name: "output right after a look", before: true, touch: []time.Duration{5*ms + 1}, until: 7 * ms, want: []time.Duration{5 * ms, 10*ms + 1}},
		{name: "a notice of nothing", before: true, closed: true, until: 30 * ms, want: []time.Duration{5 * ms, 15 * ms, 35 * ms}},
		{name: "no notice", before: true, deaf: true, touch: []time.Duration{16 * ms}, until: 30 * ms, want: []time.Duration{5 * ms, 15 * ms, 35 * ms}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &stream{changed: make(chan struct{})}
				started := time.Now()
				if test.before {
					s.touch()
				}
				for _, after := range test.touch {
					time.AfterFunc(after, s.touch)
				}
				closed := make(chan struct{})
				close(closed)
				var looks []time.Duration
				look := func() Look {
					looks = append(looks, time.Since(started))
					return Look{Known: true, Waiting: time.Since(started) >= test.until}
				}
				changed := func() <-chan struct{} {
					if test.closed {
						return closed
					}
					return s.next()
				}
				if test.deaf {
					changed = nil
				}
				answer, err := Await(t.Context(), look, s.lastTouch, changed)
				if err != nil || !answer.Waiting {
					t.Errorf("Await: %+v, %v", answer, err)
				}
				if diff := cmp.Diff(test.want, looks); diff != "" {
					t.Errorf("looks (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestAwaitTimed checks when a wait that also ends by a timer counts: the second time that it is
// seen, without output or work in between.
func TestAwaitTimed(t *testing.T) {
	const ms = time.Millisecond
	always := func(int) Look { return Look{} }
	tests := []struct {
		name    string
		timeout time.Duration
		other   func(look int) Look // what a look sees in its place; Known means that it does
		touch   time.Duration       // output after the start
		want    time.Duration       // of the look that is the answer, after the start
	}{
		{name: "a prompt with a time limit", timeout: time.Second, want: 15 * ms},
		{name: "a pause", timeout: 100 * ms, want: 125 * ms}, // 5 ms and the looks at 15, 35 and 75 ms see the first wait
		{name: "a pause that ends before a look", timeout: 60 * ms, want: 75 * ms},
		{name: "output in between", timeout: 100 * ms, touch: 100 * ms, want: 225 * ms},
		{name: "work in between", timeout: 100 * ms, other: func(look int) Look {
			if look == 4 { // at 75 ms
				return Look{Known: true, Why: "it runs"}
			}
			return Look{}
		}, want: 225 * ms},
		{name: "another program", timeout: 100 * ms, other: func(look int) Look {
			if look < 4 {
				return Look{Known: true, Waiting: true, Timed: true, Timeout: 100 * ms, PID: 2}
			}
			return Look{}
		}, want: 175 * ms},
		{name: "no timer any more", timeout: 100 * ms, other: func(look int) Look {
			if look == 3 {
				return Look{Known: true, Waiting: true, PID: 1}
			}
			return Look{}
		}, want: 35 * ms},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.other == nil {
				test.other = always
			}
			synctest.Test(t, func(t *testing.T) {
				s := &stream{changed: make(chan struct{})}
				started := time.Now()
				s.touch()
				if test.touch > 0 {
					time.AfterFunc(test.touch, s.touch)
				}
				looks := 0
				answer, err := Await(t.Context(), func() Look {
					looks++
					if other := test.other(looks); other.Known {
						return other
					}
					return Look{Known: true, Waiting: true, Timed: true, Timeout: test.timeout, PID: 1}
				}, s.lastTouch, s.next)
				if took := time.Since(started); err != nil || !answer.Waiting || answer.PID != 1 ||
					took != test.want {
					t.Errorf("%+v, %v after %v, want %v", answer, err, took, test.want)
				}
			})
		})
	}
}

// TestAwaitTimedOnce checks that a wait with a timer that was seen once is no answer at the end.
func TestAwaitTimedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		s := &stream{changed: make(chan struct{})}
		answer, err := Await(ctx, func() Look {
			return Look{Known: true, Waiting: true, Timed: true, Timeout: 100 * time.Millisecond, PID: 1}
		}, s.lastTouch, s.next)
		if !errors.Is(err, context.DeadlineExceeded) || answer.Waiting || !answer.Known || answer.Why == "" {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}

// TestAwaitFlood checks that output without end neither gives a look nor one wake for
// each piece of it.
func TestAwaitFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &stream{changed: make(chan struct{})}
		s.touch()
		asked := 0
		var flood func()
		flood = func() {
			if s.touch(); ctx.Err() == nil {
				time.AfterFunc(100*time.Microsecond, flood)
			}
		}
		flood()
		answer, err := Await(ctx, func() Look {
			t.Error("a look in the middle of output")
			return Look{}
		}, func() time.Time { asked++; return s.lastTouch() }, s.next)
		if !errors.Is(err, context.DeadlineExceeded) || answer.Waiting || answer.Known || answer.Why == "" {
			t.Errorf("Await: %+v, %v", answer, err)
		}
		if asked > 500 {
			t.Errorf("asked %d times in a second", asked)
		}
	})
}

// TestAwaitStale checks that an answer during which there was output does not count.
func TestAwaitStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{changed: make(chan struct{})}
		s.touch()
		looks := 0
		answer, err := Await(t.Context(), func() Look {
			if looks++; looks < 4 {
				<-time.After(time.Millisecond)
				s.touch()
			}
			return Look{Known: true, Waiting: true, PID: looks}
		}, s.lastTouch, s.next)
		if err != nil || answer.PID != 4 {
			t.Errorf("Await: %+v, %v; want the answer of look 4", answer, err)
		}
	})
}

// TestAwaitEnd checks that the end comes at once, with the last answer and the cause.
func TestAwaitEnd(t *testing.T) {
	reason := errors.New("enough")
	for _, after := range []time.Duration{0, time.Millisecond, 17 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if after == 0 {
					cancel(reason)
				} else {
					time.AfterFunc(after, func() { cancel(reason) })
				}
				s := &stream{changed: make(chan struct{})}
				started := time.Now()
				s.touch()
				looks := 0
				answer, err := Await(ctx, func() Look {
					looks++
					return unknown("look")
				}, s.lastTouch, s.next)
				if !errors.Is(err, reason) {
					t.Errorf("error %v, want %v", err, reason)
				}
				if took := time.Since(started); took != after {
					t.Errorf("ended after %v, want %v", took, after)
				}
				if got := answer.Why == "look"; got != (looks > 0) {
					t.Errorf("after %d looks: %+v", looks, answer)
				}
			})
		})
	}
}
