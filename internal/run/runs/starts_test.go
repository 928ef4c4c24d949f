// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
)

// TestStartsOnce: what has started a run is not started again; what has not is.
func TestStartsOnce(t *testing.T) {
	var s Starts
	made := 0
	once := func(id, run string) (string, bool) {
		return s.Once(t.Context(), id, func() string { made++; return run })
	}
	for i, test := range []struct {
		name, id, starts, run string
		again                 bool
		made                  int
	}{
		{"refused", "a", "", "", false, 1},
		{"refused before", "a", "1", "1", false, 2},
		{"started before", "a", "2", "1", true, 2},
		{"another", "b", "2", "2", false, 3},
		{"no ID", "", "3", "3", false, 4},
		{"no ID again", "", "4", "4", false, 5},
	} {
		run, again := once(test.id, test.starts)
		if run != test.run || again != test.again || made != test.made {
			t.Errorf("%d %s: run %q, again %v, made %d", i, test.name, run, again, made)
		}
	}
	for i := range maxStarts { // a is forgotten
		once(fmt.Sprint("more", i), "9")
	}
	if run, again := once("more0", "5"); run != "9" || !again {
		t.Errorf("one of the last: run %q, again %v", run, again)
	}
	if run, again := once("a", "5"); run != "5" || again {
		t.Errorf("one before them: run %q, again %v", run, again)
	}
}

// TestStartsWait: a start waits for the same one in progress, as long as its connection lasts, and is
// made when that has not started a run.
func TestStartsWait(t *testing.T) {
	for _, test := range []struct {
		name, first, run string
		again            bool
	}{
		{"started", "1", "1", true},
		{"refused", "", "2", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s Starts
				free := make(chan struct{})
				go s.Once(t.Context(), "a", func() string { <-free; return test.first })
				synctest.Wait()
				gone, leave := context.WithCancel(t.Context())
				leave()
				if run, again := s.Once(gone, "a", func() string { return "3" }); run != "" || !again {
					t.Errorf("a connection that has ended: %q, %v", run, again)
				}
				over := false
				go func() {
					if run, again := s.Once(t.Context(), "a",
						func() string { return "2" }); run != test.run || again != test.again {
						t.Errorf("%q, %v", run, again)
					}
					over = true
				}()
				if synctest.Wait(); over {
					t.Error("it does not wait")
				}
				close(free)
				if synctest.Wait(); !over {
					t.Error("it waits for ever")
				}
			})
		})
	}
}

// TestStartPanics: a start that panics is over.
func TestStartPanics(t *testing.T) {
	var s Starts
	func() {
		defer func() { _ = recover() }()
		s.Once(t.Context(), "a", func() string { panic("x") })
	}()
	if run, again := s.Once(t.Context(), "a", func() string { return "1" }); run != "1" || again {
		t.Errorf("%q, %v", run, again)
	}
}
