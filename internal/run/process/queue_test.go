// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
)

// queue returns a Queue that writes to r.
func queue(r *reader, terminal bool) *InputQueue {
	return NewInputQueue(func() InputTaker { return r }, terminal, 0)
}

// put is Put of a sender that does not wait.
func put(q *InputQueue, id string, data []byte, accepted func()) error {
	_, err := q.Put(id, data, false, accepted)
	return err
}

// end closes the input.
func end(q *InputQueue, id string, accepted func()) error {
	_, err := q.Put(id, nil, true, accepted)
	return err
}

// reader is a process that takes input only when a test says so.
type reader struct {
	executor.Process
	turns chan error // what the next write returns

	mu  sync.Mutex
	got bytes.Buffer
}

func (r *reader) Write(p []byte) (int, error) {
	err := <-r.turns
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, io.ErrShortWrite) {
		r.got.Write(p[:1])
		return 1, err
	}
	if err != nil {
		return 0, err
	}
	return r.got.Write(p)
}

// TestQueueInput: writes reach the process in their order and once each, whatever it does.
func TestQueueInput(t *testing.T) {
	for _, test := range []struct {
		name   string
		ids    string // one letter is one write of itself
		turns  []error
		want   string
		failed int // of the writes of ids, answered with an error
	}{
		{"in order", "abc", []error{nil, nil, nil}, "abc", 0},
		{"again", "abab", []error{nil, nil}, "ab", 0},
		{"closed by the process", "abc", []error{nil, io.ErrClosedPipe, io.ErrClosedPipe}, "a", 0},
		{"lost", "abc", []error{errors.New("line too long"), nil}, "c", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reader{turns: make(chan error, 10)}
				in := queue(r, false)
				for _, err := range test.turns {
					r.turns <- err
				}
				accepted, failed := 0, 0
				for _, id := range test.ids {
					if err := put(in, string(id), []byte(string(id)), func() { accepted++ }); err != nil {
						failed++
					}
					synctest.Wait()
				}
				if got := r.got.String(); got != test.want || failed != test.failed ||
					accepted+failed != len(test.ids) {
					t.Errorf("%q, %d accepted, %d failed, want %q, %d failed", got, accepted, failed,
						test.want, test.failed)
				}
			})
		})
	}
}

// TestInputWaits: much input for a process that does not read is accepted when its turn comes,
// too much is refused, and the end of the process answers what waits.
func TestInputWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{turns: make(chan error)}
		in := queue(r, false)
		accepted := 0
		count := func() { accepted++ }
		write := func(id string, size int) error { return put(in, id, make([]byte, size), count) }
		for i := range maxInput / freeInput {
			if err := write(fmt.Sprint(i), freeInput); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if accepted != 1 {
			t.Errorf("%d writes were accepted, want 1", accepted)
		}
		if err := write("more", 1); !errors.Is(err, ErrInputFull) {
			t.Errorf("%v", err)
		}
		r.turns <- nil
		synctest.Wait()
		if accepted != 2 {
			t.Errorf("%d writes were accepted, want 2", accepted)
		}
		if err := write("more", 1); err != nil { // a write that was refused is not remembered
			t.Error(err)
		}
		in.Close()
		r.turns <- io.ErrClosedPipe
		synctest.Wait()
		if want := maxInput/freeInput + 1; accepted != want {
			t.Errorf("%d writes were accepted, want %d", accepted, want)
		}
	})
}

// CloseInput notes the end as a point.
func (r *reader) CloseInput() error {
	_, err := r.Write([]byte("."))
	return err
}

// TestSettle: it waits for what was accepted before, and for nothing else.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{turns: make(chan error)}
		in := queue(r, false)
		in.Settle(t.Context()) // there is nothing
		for _, text := range []string{"a", "b"} {
			if err := put(in, "", []byte(text), func() {}); err != nil {
				t.Fatal(err)
			}
		}
		settled := make(chan string, 1)
		go func() {
			in.Settle(t.Context())
			r.mu.Lock()
			defer r.mu.Unlock()
			settled <- r.got.String()
		}()
		synctest.Wait()
		if err := put(in, "", []byte("c"), func() {}); err != nil {
			t.Fatal(err)
		}
		r.turns <- nil
		r.turns <- nil
		if got := <-settled; got != "ab" {
			t.Errorf("it returned after %q", got)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		in.Settle(ended)
		r.turns <- nil
	})
}

// TestInputEnd: the input ends after what was written before, once, and nothing comes after it. A
// terminal takes more.
func TestInputEnd(t *testing.T) {
	for _, test := range []struct {
		name     string
		terminal bool
		ids      string // a point is an end without ID, a capital letter one with that ID
		want     string
		ended    int // of the writes of ids, refused because the input is closed
	}{
		{"pipe", false, "ab.", "ab.", 0},
		{"written late", false, "a.b", "a.", 1},
		{"written again", false, "a.a", "a.", 0},
		{"ended again", false, "a..AA", "a.", 0},
		{"terminal", true, "a.b.", "a.b.", 0},
		{"terminal, ended again", true, "aAAbB", "a.b.", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &reader{turns: make(chan error)}
				in := queue(r, test.terminal)
				accepted, ended := 0, 0
				for _, c := range test.ids {
					id, count := string(c), func() { accepted++ }
					var err error
					switch {
					case c == '.':
						err = end(in, "", count)
					case c < 'a':
						err = end(in, id, count)
					default:
						err = put(in, id, []byte(id), count)
					}
					if errors.Is(err, ErrInputEnded) {
						ended++
					}
				}
				close(r.turns) // it reads what waits
				synctest.Wait()
				if got := r.got.String(); got != test.want || ended != test.ended ||
					accepted+ended != len(test.ids) {
					t.Errorf("%q, %d accepted, %d refused, want %q, %d refused", got, accepted, ended,
						test.want, test.ended)
				}
			})
		})
	}
}

// TestInputMany: a bounded number of writes waits, however small they are.
func TestInputMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{turns: make(chan error)}
		in := queue(r, true)
		n := 0
		for ; n < 2*maxWaiting; n++ {
			if err := end(in, "", func() {}); err != nil {
				if !errors.Is(err, ErrInputFull) {
					t.Error(err)
				}
				break
			}
		}
		if n > maxWaiting+1 { // one is on its way
			t.Errorf("%d writes wait", n)
		}
		in.Close()
		close(r.turns)
	})
}

// TestWriteIDs: a bounded number of writes is remembered.
func TestWriteIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reader{turns: make(chan error)}
		in := queue(r, false)
		in.Close()
		for i := range 3 * maxIDs {
			if err := put(in, fmt.Sprint(i), []byte("x"), func() {}); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range map[int]bool{0: false, 2*maxIDs - 1: false, 2 * maxIDs: true,
			3*maxIDs - 1: true} {
			if _, ok := in.known.Find(fmt.Sprint(i)); ok != want {
				t.Errorf("write %d is known: %v", i, ok)
			}
		}
	})
}

// SetInputDeadline lets a write that waits fail, as a file does.
func (r *patient) SetInputDeadline(at time.Time) error {
	if r.setting != nil {
		r.setting(at)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer.Reset(time.Until(at))
	return nil
}

// A patient is a process with deadlines that reads nothing until room says so.
type patient struct {
	setting func(at time.Time) // called before a deadline is set; nil does nothing
	mu      sync.Mutex
	timer   *time.Timer
	room    chan int // how many bytes of the next write are read
	got     bytes.Buffer
	closed  int
}

func (r *patient) Write(p []byte) (int, error) {
	select {
	case n := <-r.room:
		n = min(n, len(p))
		r.got.Write(p[:n])
		if n < len(p) {
			return n, io.ErrShortWrite
		}
		return n, nil
	case <-r.timer.C:
		return 0, os.ErrDeadlineExceeded
	}
}

func (r *patient) CloseInput() error {
	r.closed++
	return nil
}

// A result is what Do returned, and after which time.
type result struct {
	n    int
	err  error
	took time.Duration
}

// do writes text in the background.
func do(ctx context.Context, q *InputQueue, text string) chan result {
	got := make(chan result, 1)
	begin := time.Now()
	go func() {
		n, err := q.Do(ctx, []byte(text), false)
		got <- result{n, err, time.Since(begin)}
	}()
	synctest.Wait()
	return got
}

func (got result) check(t *testing.T, n int, err error, took time.Duration) {
	t.Helper()
	if got.n != n || !errors.Is(got.err, err) || got.took != took {
		t.Errorf("%+v, want %d, %v after %v", got, n, err, took)
	}
}

// waiting returns a Queue for tests in synctest bubbles.
func waiting(patience time.Duration) (*patient, *InputQueue) {
	r := &patient{timer: time.NewTimer(time.Hour), room: make(chan int)}
	return r, NewInputQueue(func() InputTaker { return r }, false, patience)
}

// TestDo: those who wait for their input get the result of their own, in turns.
func TestDo(t *testing.T) {
	const patience = time.Second
	for name, test := range map[string]func(t *testing.T, r *patient, q *InputQueue){
		"progress": func(t *testing.T, r *patient, q *InputQueue) {
			got := do(t.Context(), q, "abc")
			for range 3 { // each time just before its patience ends
				<-time.After(patience - 1)
				r.room <- 1
			}
			(<-got).check(t, 3, nil, 3*(patience-1))
		},
		"not read": func(t *testing.T, r *patient, q *InputQueue) {
			first, second := do(t.Context(), q, "abc"), do(t.Context(), q, "d")
			r.room <- 2
			(<-first).check(t, 2, os.ErrDeadlineExceeded, patience)
			(<-second).check(t, 0, os.ErrDeadlineExceeded, 2*patience)
		},
		"canceled on its way": func(t *testing.T, r *patient, q *InputQueue) {
			ctx, cancel := context.WithCancel(t.Context())
			first, second := do(ctx, q, "abc"), do(t.Context(), q, "d")
			r.room <- 1
			synctest.Wait()
			cancel()
			(<-first).check(t, 1, os.ErrDeadlineExceeded, 0)
			synctest.Wait()
			r.room <- 1 // the end of the first one does not hit the second
			(<-second).check(t, 1, nil, 0)
		},
		"canceled in the queue": func(t *testing.T, r *patient, q *InputQueue) {
			ctx, cancel := context.WithCancel(t.Context())
			first, second := do(t.Context(), q, "a"), do(ctx, q, "b")
			cancel()
			(<-second).check(t, 0, os.ErrDeadlineExceeded, 0)
			r.room <- 1
			(<-first).check(t, 1, nil, 0)
			if r.got.String() != "a" || q.size != 0 {
				t.Errorf("%q, %d bytes wait", &r.got, q.size)
			}
		},
		"canceled before its deadline is set": func(t *testing.T, r *patient, q *InputQueue) {
			ctx, cancel := context.WithCancel(t.Context())
			past := make(chan struct{})
			r.setting = func(at time.Time) {
				if at.Before(time.Now()) {
					close(past)
					return
				}
				cancel()
				<-past // which the new deadline hides
			}
			(<-do(ctx, q, "a")).check(t, 0, os.ErrDeadlineExceeded, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, q := waiting(patience)
				test(t, r, q)
			})
		})
	}
}

// TestEnds: nothing is taken after the end of the input, or of the command, and each sender learns
// which of the two it was.
func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, q := waiting(time.Second)
		first, second := do(t.Context(), q, "a"), do(t.Context(), q, "b")
		last, err := q.Put("", nil, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		(<-do(t.Context(), q, "c")).check(t, 0, ErrInputEnded, 0)
		if n, err := q.Do(t.Context(), nil, true); n != 0 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		q.Close()
		r.room <- 1
		(<-first).check(t, 1, nil, 0)
		(<-second).check(t, 0, os.ErrProcessDone, 0)
		if _, err := last.Result(); err != nil || r.closed != 0 {
			t.Errorf("%v, closed %d times", err, r.closed)
		}
		q.Wait()
		(<-do(t.Context(), q, "c")).check(t, 0, os.ErrProcessDone, 0)
		w, _ := q.Put("", []byte("c"), false, nil)
		if _, err := w.Result(); !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		if err := put(q, "", []byte("c"), func() { t.Error("accepted") }); !errors.Is(err, ErrInputEnded) {
			t.Error(err)
		}
	})
}

// TestPutAgain: a write with a known ID has the result of the first one, for a sender that waits and
// for one that does not; an error of the first goes to its sender only.
func TestPutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("line too long")
		r := &reader{turns: make(chan error, 3)}
		q := queue(r, false)
		first, err := q.Put("1", []byte("a"), false, nil)
		again, err2 := q.Put("1", []byte("a"), false, nil)
		if err != nil || err2 != nil || first != again {
			t.Fatalf("%v, %v", err, err2)
		}
		r.turns <- lost
		if n, err := again.Result(); n != 0 || !errors.Is(err, lost) {
			t.Errorf("%d, %v", n, err)
		}
		accepted := 0
		if err := put(q, "1", []byte("a"), func() { accepted++ }); err != nil || accepted != 1 {
			t.Errorf("%v, accepted %d times", err, accepted)
		}
		if err := put(q, "2", []byte("b"), func() { accepted++ }); err != nil || accepted != 2 {
			t.Errorf("%v, accepted %d times", err, accepted)
		}
		r.turns <- nil
		synctest.Wait()
		if got := r.got.String(); got != "b" {
			t.Errorf("%q", got)
		}
	})
}

// TestHold: writes wait for the next attempt where the last one got none, an answer of the terminal counts as
// none and is for one attempt only, and what waits too long is not taken.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := &patient{room: make(chan int, 1), timer: time.NewTimer(time.Hour)},
			&patient{room: make(chan int, 1), timer: time.NewTimer(time.Hour)}
		first.room <- 4
		second.room <- 4
		to := first
		q := NewInputQueue(func() InputTaker { return to }, true, time.Second)
		if n, err := q.Answer(t.Context(), []byte("size")); n != 4 || err != nil {
			t.Fatal(n, err)
		}
		if held := q.Hold(); !held || !q.Hold() { // also a second time
			t.Fatal("nothing was sent")
		}
		if n, err := q.Answer(t.Context(), []byte("late")); n != 0 || !errors.Is(err, os.ErrProcessDone) {
			t.Error(n, err)
		}
		if n, err := q.Do(t.Context(), []byte("full"), false); n != 0 ||
			!errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if n, err := q.Do(ctx, []byte("gone"), false); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(n, err)
		}
		got := do(t.Context(), q, "next")
		to = second
		q.Release()
		if r := <-got; r.n != 4 || r.err != nil || second.got.String() != "next" ||
			first.got.String() != "size" {
			t.Errorf("%+v, %q and %q", r, &first.got, &second.got)
		}
		if q.Hold() {
			t.Error("something was sent")
		}
		q.Close()
		q.Wait()
	})
}
