// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// How many short sessions there are one after another, which takes about six seconds.
// What leaks once for each of them is seen with ten; what leaks now and then needs many.
const (
	shortOnPipes    = 1000
	shortOnTerminal = 200
)

// TestSessionsLeakNothing: short sessions in a row leave no descriptor, no goroutine and
// no process behind, while their Runner lives: neither those that were closed nor those
// of which only the last are kept.
func TestSessionsLeakNothing(t *testing.T) {
	r := sessionRunner(t)
	program, dir := testenv.NeedProgram(t, "true"), t.TempDir()
	short := func(t *testing.T, terminal bool) *Session {
		t.Helper()
		c := Command(program)
		c.Dir, c.OpenStdin = dir, !terminal
		s := begin(t, r, c)
		res, err := s.Wait(t.Context())
		if err != nil || res.ExitCode != 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		return s
	}
	for _, tt := range []struct {
		name     string
		count    int
		terminal bool
		forgets  bool // nobody closes them
	}{
		{name: "pipes", count: shortOnPipes, forgets: true},
		{name: "terminal", count: shortOnTerminal, terminal: true},
		{name: "terminal, not closed", count: keptEnded, terminal: true, forgets: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !testenv.IsLong() {
				tt.count = max(tt.count/5, keptEnded)
			}
			for range keptEnded { // what all share comes up, and the table fills
				short(t, tt.terminal)
			}
			var before remains
			settle(t, func() bool {
				again := before
				before = remaining(t)
				return before.children == 0 && again == before
			})
			for range tt.count {
				s := short(t, tt.terminal)
				if tt.forgets {
					continue
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			var after remains
			if !settle(t, func() bool {
				after = remaining(t)
				return after.descriptors <= before.descriptors && after.goroutines <= before.goroutines && after.children == 0
			}) {
				t.Errorf("%d sessions later there are %v, %v before", tt.count, after, before)
			}
		})
	}
}

// remains is what this process holds of what sessions need.
type remains struct{ descriptors, goroutines, children int }

func (r remains) String() string {
	return fmt.Sprintf("%d descriptors, %d goroutines and %d children", r.descriptors, r.goroutines, r.children)
}

func remaining(t *testing.T) remains {
	t.Helper()
	r := remains{descriptors: openFDs(), goroutines: runtime.NumGoroutine()}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lists {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		r.children += len(strings.Fields(string(text)))
	}
	return r
}

// settle asks until the answer is yes, for what is collected in the background, and
// reports whether it became so.
func settle(t *testing.T, ok func() bool) bool {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	deadline := time.NewTimer(enough)
	defer deadline.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}
