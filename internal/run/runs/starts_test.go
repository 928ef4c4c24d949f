// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A word is what a start came to: empty is not remembered, and one that begins with "not" ran nothing.
type word string

func (w word) Size() int {
	switch {
	case w == "":
		return Forgotten
	case strings.HasPrefix(string(w), "not"):
		return len(w)
	}
	return 0
}

// TestStartsOnce: what has come to an answer is not started again; what has not is.
func TestStartsOnce(t *testing.T) {
	var s Starts[word]
	made := 0
	for i, test := range []struct {
		name, id, by string
		comes, want  word
		again        bool
		made         int
	}{
		{"refused", "a", "x", "", "", false, 1},
		{"refused before", "a", "x", "1", "1", false, 2},
		{"started before", "a", "x", "2", "1", true, 2},
		{"another", "b", "x", "2", "2", false, 3},
		{"not run", "c", "x", "not", "not", false, 4},
		{"not run before", "c", "x", "3", "not", true, 4},
		{"of somebody else", "a", "y", "4", "4", false, 5},
		{"no ID", "", "x", "5", "5", false, 6},
		{"no ID again", "", "x", "6", "6", false, 7},
		{"a long ID", strings.Repeat("a", 1<<20), "x", "7", "7", false, 8},
		{"a long ID again", strings.Repeat("a", 1<<20), "x", "8", "7", true, 8},
	} {
		got, again := s.Once(t.Context(), KeyOf(test.id, test.by),
			func() word { made++; return test.comes })
		if got != test.want || again != test.again || made != test.made {
			t.Errorf("%d %s: %q, again %v, made %d", i, test.name, got, again, made)
		}
	}
	if KeyOf("a", "b", "c") == KeyOf("c", "a", "b") || KeyOf("a", "bc") == KeyOf("a", "b", "c") ||
		KeyOf("1:a", "b") == KeyOf("a", "b1:") {
		t.Error("different starts have one key")
	}
}

// TestStartsBounded: the oldest that have ended are forgotten, after a day, where they are too many, and
// where answers without anything started are too long. Those that have started something stay meanwhile.
func TestStartsBounded(t *testing.T) {
	for _, test := range []struct {
		name        string
		comes       word
		count       int
		passes      time.Duration
		first, last bool // are known
		old         bool // what has started something before all is known
	}{
		{"few", "1", 10, 0, true, true, true},
		{"a day", "1", 10, startTime, true, true, true},
		{"more than a day", "1", 10, startTime + 1, false, false, false},
		{"so many", "1", maxStarts - 1, 0, true, true, true},
		{"too many", "1", maxStarts + 1, 0, false, true, false},
		{"so many not run", "not", maxStarts, 0, true, true, true},
		{"too many not run", "not", maxStarts + 1, 0, false, true, true},
		{"so long", word("not" + strings.Repeat(".", maxUnrun/8-3)), 8, 0, true, true, true},
		{"too long", word("not" + strings.Repeat(".", maxUnrun/8-3)), 9, 0, false, true, true},
		{"one too long", word("not" + strings.Repeat(".", maxUnrun)), 1, 0, false, false, true},
		{"not remembered", "", maxStarts + 1, 0, false, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s Starts[word]
				progress, _ := s.Begin(KeyOf("in progress"))
				make := func(id string, comes word) {
					start, first := s.Begin(KeyOf(id))
					if !first {
						t.Fatalf("%s is known", id)
					}
					start.End(comes)
				}
				make("old", "1")
				for i := range test.count {
					make(fmt.Sprint(i), test.comes)
				}
				<-time.After(test.passes)
				for id, want := range map[string]bool{
					"old": test.old, "0": test.first, fmt.Sprint(test.count - 1): test.last, "in progress": true,
				} {
					if test.count == 1 && id == "0" {
						want = test.last
					}
					if start, first := s.Begin(KeyOf(id)); first == want {
						t.Errorf("%s: known %v", id, !first)
					} else if first {
						start.End("")
					}
				}
				if len(s.known) != 1+len(s.ran)+len(s.unrun) || len(s.ran) > maxStarts || len(s.unrun) > maxStarts {
					t.Errorf("%d, %d and %d", len(s.known), len(s.ran), len(s.unrun))
				}
				progress.End("1")
			})
		})
	}
}

// TestStartsWait: a start waits for the same one in progress, until its context ends, and is made when that
// came to nothing.
func TestStartsWait(t *testing.T) {
	for _, test := range []struct {
		name        string
		first, want word
		again       bool
	}{
		{"started", "1", "1", true},
		{"not run", "not", "not", true},
		{"refused", "", "2", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s Starts[word]
				free := make(chan struct{})
				go s.Once(t.Context(), KeyOf("a"), func() word { <-free; return test.first })
				synctest.Wait()
				gone, leave := context.WithCancel(t.Context())
				leave()
				if got, again := s.Once(gone, KeyOf("a"), func() word { return "3" }); got != "" || !again {
					t.Errorf("a connection that has ended: %q, %v", got, again)
				}
				over := false
				go func() {
					if got, again := s.Once(t.Context(), KeyOf("a"),
						func() word { return "2" }); got != test.want || again != test.again {
						t.Errorf("%q, %v", got, again)
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
	var s Starts[word]
	func() {
		defer func() { _ = recover() }()
		s.Once(t.Context(), KeyOf("a"), func() word { panic("x") })
	}()
	if got, again := s.Once(t.Context(), KeyOf("a"), func() word { return "1" }); got != "1" || again {
		t.Errorf("%q, %v", got, again)
	}
}
