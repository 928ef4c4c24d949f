// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestCloseIsBounded: closing waits for what a command has left, and not for ever.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 900 * time.Millisecond
		late, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		broken, over := errors.New("broken"), make(chan struct{})
		if err := begin(late, "late", func() error { return broken })(); !errors.Is(err, broken) {
			t.Errorf("error %v, want that of the function", err)
		}
		start := time.Now()
		wait := begin(late, "late", func() error { <-over; return broken })
		if err := wait(); err == nil || err.Error() != "late" || time.Since(start) != limit {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
		close(over)
		if err := wait(); err != nil {
			t.Errorf("it is reported again: %v", err)
		}
	})
}

// TestCloseTime: closing is bounded by less than a second when a command was stopped, with a
// grace or without, and only then: the end of a run that was stopped is bounded as a whole.
func TestCloseTime(t *testing.T) {
	for name, stop := range map[string]func(*Child) error{
		"":        nil,
		"signal":  func(c *Child) error { return c.Signal(syscall.SIGKILL, true) },
		"at once": (*Child).Kill,
	} {
		a := newArena(t)
		mustRun(t, a, &job{args: sh(`sleep 1000 & ` + map[bool]string{true: "wait", false: ":"}[stop != nil]),
			during: func(c *Child) {
				if stop != nil {
					must(t, stop(c))
				}
			}})
		if short := a.host.closeTime() < time.Second; short != (stop != nil) {
			t.Errorf("stopped by %q: closing takes at most %v", name, a.host.closeTime())
		}
	}
	a := newArena(t)
	for range 3 { // a machine with much to end needs longer
		mustRun(t, a, &job{args: sh("sleep 1000"),
			during: func(c *Child) { must(t, errors.Join(c.Kill(), c.Kill())) }})
	}
	if got, want := a.host.closeTime(), 1100*time.Millisecond; got != want {
		t.Errorf("three commands were stopped: closing takes at most %v, want %v", got, want)
	}
}

// TestCloseWithoutLock: closing does not wait for a process that keeps the lock of the journal,
// such as one that is stopped.
func TestCloseWithoutLock(t *testing.T) {
	a := newArena(t)
	mustRun(t, a, &job{args: sh(":"), during: func(c *Child) { must(t, c.Signal(syscall.SIGKILL, true)) }})
	lock, err := os.OpenFile(filepath.Join(a.host.files.state, "guard", "lock"), os.O_RDWR, 0)
	must(t, err)
	defer lock.Close()
	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	if err := a.host.Close(); err == nil || !strings.Contains(err.Error(), "protected names") {
		t.Errorf("error %v, want that names are still protected", err)
	}
}
