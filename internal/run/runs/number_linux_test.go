// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestKeptNumbers: a Table with kept numbers goes on where another one was when it was killed, and what
// fails to give one leaves nothing behind.
func TestKeptNumbers(t *testing.T) {
	var kept uint64
	var broken error
	var busy atomic.Int64
	number := func(after uint64) (uint64, error) {
		if broken != nil {
			return 0, broken
		}
		kept = max(kept, after) + 1
		return kept, nil
	}
	prepare := func(_ context.Context, r *Request) (*Prepared, error) {
		return &Prepared{Runner: &sallyport.Runner{Policy: sandbox.FullAccess()},
			Cmd: &sallyport.Cmd{Args: r.Args, Dir: r.Dir}}, nil
	}
	killed := New(prepare, number, nil, nil, func(int) {}) // it is not closed before the next one goes on
	defer killed.Close()
	first := begin(t, killed, Request{}, "sleep", "100")
	tab := New(prepare, number, nil, nil, func(n int) { busy.Add(int64(n)) })
	second := begin(t, tab, Request{}, "true")
	if first.ID() != "1" || second.ID() != "2" {
		t.Errorf("%s and %s", first.ID(), second.ID())
	}
	if _, err := tab.Find("me", first.ID()); err == nil {
		t.Error("the new table knows the old number")
	}
	kept = 0 // someone has removed it
	third := begin(t, tab, Request{}, "true")
	if third.ID() != "3" {
		t.Errorf("%s after the loss", third.ID())
	}
	broken = errors.New("unreadable")
	for range maxLive + 1 {
		var failure *Error
		if _, err := tab.Reserve("me"); !errors.As(err, &failure) || failure.Reason != Failed ||
			!errors.Is(err, broken) {
			t.Fatalf("%v", err)
		}
	}
	tab.Close()
	if busy.Load() != 0 || len(tab.owners) != 0 {
		t.Errorf("%d busy, %d owners", busy.Load(), len(tab.owners))
	}
}

// TestNumbersAtOnce: starts at once have different numbers.
func TestNumbersAtOnce(t *testing.T) {
	tab, _ := newTable(t)
	ids := make([]string, maxLive)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			r, err := tab.Reserve("me")
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = r.ID()
			tab.release(r)
		})
	}
	wg.Wait()
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != maxLive {
		t.Errorf("%d numbers for %d runs", n, maxLive)
	}
}
