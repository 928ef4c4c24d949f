// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// pipe returns a waiter for the reading end of a pipe.
func pipe(t *testing.T) (w *Waiter, in, out int) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	w, err := NewWaiter(p[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		unix.Close(p[0])
		unix.Close(p[1])
	})
	return w, p[0], p[1]
}

func put(t *testing.T, fd int) {
	if _, err := unix.Write(fd, []byte{1}); err != nil {
		t.Fatal(err)
	}
}

func TestWait(t *testing.T) {
	for _, c := range []struct {
		name   string
		before bool
	}{{"data before the wait", true}, {"data during the wait", false}} {
		t.Run(c.name, func(t *testing.T) {
			w, in, out := pipe(t)
			for range 100 {
				done := make(chan error)
				if c.before {
					put(t, out)
				}
				go func() { done <- w.Wait() }()
				if !c.before {
					put(t, out)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if _, err := unix.Read(in, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestWaitStays checks that Wait returns again for data that was not read.
func TestWaitStays(t *testing.T) {
	w, _, out := pipe(t)
	put(t, out)
	for range 3 {
		if err := w.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHangUp closes the other end at any time, also when the runtime's poller has reported
// that before the wait.
func TestHangUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		pause func()
	}{
		{"at once", func() {}},
		{"after other goroutines", runtime.Gosched},
		{"after the poller", func() { awaitPoller(t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 50 {
				hangUp(t, c.pause)
			}
		})
	}
}

// awaitPoller returns when the runtime's poller has reported all earlier events.
func awaitPoller(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.Read(make([]byte, 1))
	}()
	w.Close()
	<-done
}

func hangUp(t *testing.T, pause func()) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	w, err := NewWaiter(p[0])
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	unix.Close(p[1])
	pause()
	if err := w.Wait(); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	w, _, _ := pipe(t)
	done := make(chan error)
	go func() { done <- w.Wait() }()
	w.Close()
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := w.Wait(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a second wait: %v", err)
	}
}

func TestBadDescriptor(t *testing.T) {
	if _, err := NewWaiter(-1); !errors.Is(err, unix.EBADF) {
		t.Errorf("got %v", err)
	}
}
