// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSerial(t *testing.T) {
	t.Run("row 38 writes to two sessions overlap, to one they do not", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			a, b := exec(t, tools, Request{Command: "a", TTY: true}), exec(t, tools, Request{Command: "b", TTY: true})
			began := time.Now()
			var ended []time.Duration
			var mu sync.Mutex
			var calls sync.WaitGroup
			for _, id := range []int{a.SessionID, a.SessionID, b.SessionID} {
				calls.Go(func() {
					if _, err := tools.WriteStdin(t.Context(), WriteRequest{SessionID: id, Chars: "x", Yield: seconds(1)}); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					ended = append(ended, time.Since(began))
				})
			}
			calls.Wait()
			if want := []time.Duration{seconds(1), seconds(1), seconds(2)}; !slices.Equal(ended, want) {
				t.Errorf("they ended after %v, want %v", ended, want)
			}
		})
	})
	t.Run("a call that waited for its turn does not use a process that took the number", func(t *testing.T) {
		plays := map[string]func(*fakeProcess){"x": later(seconds(11), "", ending{})}
		bubble(t, plays, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			r := exec(t, tools, Request{Command: "x", TTY: true})
			e, err := tools.acquire(t.Context(), r.SessionID)
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan error)
			go func() {
				_, err := tools.acquire(t.Context(), r.SessionID)
				failed <- err
			}()
			synctest.Wait()
			tools.remove(e)
			place, err := tools.processes.Reserve(tools.most())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := place.Enter(strconv.Itoa(r.SessionID), &entry{turn: make(chan struct{}, 1)}); err != nil {
				t.Fatal(err)
			}
			e.unlock()
			var unknown *Error
			if err := <-failed; !isKind(err, ErrUnknownProcess, &unknown) {
				t.Errorf("%v", err)
			}
			place.Forget()
			place.End(0)
		})
	})
	t.Run("a call that waited for its turn finds the process gone", func(t *testing.T) {
		plays := map[string]func(*fakeProcess){"x": later(seconds(11), "", ending{})}
		bubble(t, plays, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			r := exec(t, tools, Request{Command: "x", TTY: true})
			var first, second error
			var calls sync.WaitGroup
			calls.Go(func() { _, first = tools.WriteStdin(t.Context(), WriteRequest{SessionID: r.SessionID}) })
			synctest.Wait()
			calls.Go(func() { _, second = tools.WriteStdin(t.Context(), WriteRequest{SessionID: r.SessionID}) })
			calls.Wait()
			var unknown *Error
			if first != nil || !isKind(second, ErrUnknownProcess, &unknown) {
				t.Errorf("got %v and %v", first, second)
			}
		})
	})
}

func TestTerminate(t *testing.T) {
	t.Run("row 18 list, terminate, terminate again", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
			tools.Cmd.Dir = "/w"
			r := exec(t, tools, Request{CallID: "call", Command: "sleep 9"})
			list := tools.List()
			if len(list) != 1 || list[0].CallID != "call" || list[0].SessionID != r.SessionID || list[0].Command != "sleep 9" ||
				list[0].Dir != "/w" || !list[0].Running {
				t.Errorf("the list is %+v", list)
			}
			for i, want := range []bool{true, false} {
				if ok, err := tools.Terminate(t.Context(), r.SessionID); ok != want || err != nil {
					t.Errorf("call %d: %v, %v", i, ok, err)
				}
			}
			if list := tools.List(); len(list) != 0 {
				t.Errorf("the list is %+v", list)
			}
			synctest.Wait()
			if end := of[End](h); len(end) != 1 || end[0].ExitCode != 143 {
				t.Errorf("the end is %+v", end)
			}
		})
	})
	t.Run("row 19 during the first call", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
			resume := tools.Pause() // the first call cannot return
			var r *Response
			var calls sync.WaitGroup
			calls.Go(func() { r = exec(t, tools, Request{Command: "x"}) })
			synctest.Wait()
			if ok, err := tools.Terminate(t.Context(), h.id()); !ok || err != nil {
				t.Errorf("got %v, %v", ok, err)
			}
			synctest.Wait()
			if list := tools.List(); len(list) != 1 || list[0].Running {
				t.Errorf("while the call waits the list is %+v", list)
			}
			resume()
			calls.Wait()
			if r.SessionID != 0 || r.ExitCode == nil {
				t.Errorf("got %+v", r)
			}
			if list := tools.List(); len(list) != 0 {
				t.Errorf("the list is %+v", list)
			}
		})
	})
}

func TestTerminateMeanwhile(t *testing.T) {
	t.Run("row 20 during a poll", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			first := exec(t, tools, Request{Command: "x"})
			var r *Response
			var calls sync.WaitGroup
			calls.Go(func() { r = write(t, tools, WriteRequest{SessionID: first.SessionID}) })
			synctest.Wait()
			if ok, err := tools.Terminate(t.Context(), first.SessionID); !ok || err != nil {
				t.Errorf("got %v, %v", ok, err)
			}
			calls.Wait()
			if r.SessionID != 0 || *r.ExitCode != 143 || r.Signal != 15 {
				t.Errorf("got %+v", r)
			}
		})
	})
	t.Run("during the first call, which is cut short then", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, h *heard, _ *fakeMachine) {
			resume := tools.Pause()
			ctx, cancel := context.WithTimeout(t.Context(), seconds(1))
			defer cancel()
			var err error
			var calls sync.WaitGroup
			calls.Go(func() { _, err = tools.ExecCommand(ctx, Request{Command: "x"}) })
			synctest.Wait()
			if ok, err := tools.Terminate(t.Context(), h.id()); !ok || err != nil {
				t.Errorf("got %v, %v", ok, err)
			}
			calls.Wait()
			resume()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if list := tools.List(); len(list) != 0 {
				t.Errorf("the list is %+v", list)
			}
		})
	})
	t.Run("row 34 an error leaves it alive", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, tools *Tools, _ *heard, m *fakeMachine) {
			r := exec(t, tools, Request{Command: "x"})
			m.started[0].set(func() { m.started[0].stubborn = true })
			ctx, cancel := context.WithTimeout(t.Context(), seconds(1))
			defer cancel()
			if ok, err := tools.Terminate(ctx, r.SessionID); ok || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, %v", ok, err)
			}
			if list := tools.List(); len(list) != 1 || !list[0].Running {
				t.Errorf("the list is %+v", list)
			}
			m.started[0].set(func() { m.started[0].stubborn = false })
			if ok, err := tools.Terminate(t.Context(), r.SessionID); !ok || err != nil {
				t.Errorf("got %v, %v", ok, err)
			}
			if list := tools.List(); len(list) != 0 || m.started[0].running() {
				t.Errorf("the list is %+v", list)
			}
		})
	})
	t.Run("an end that no call was told stays", func(t *testing.T) {
		plays := map[string]func(*fakeProcess){"x": later(seconds(11), "bye", ending{code: 4})}
		bubble(t, plays, func(t *testing.T, tools *Tools, _ *heard, _ *fakeMachine) {
			r := exec(t, tools, Request{Command: "x"})
			after(t.Context(), seconds(5))
			if list := tools.List(); len(list) != 1 || list[0].Running {
				t.Errorf("the list is %+v", list)
			}
			if ok, err := tools.Terminate(t.Context(), r.SessionID); ok || err != nil {
				t.Errorf("got %v, %v", ok, err)
			}
			if r := write(t, tools, WriteRequest{SessionID: r.SessionID}); *r.ExitCode != 4 || string(r.Output) != "bye" {
				t.Errorf("got %+v", r)
			}
		})
	})
}
