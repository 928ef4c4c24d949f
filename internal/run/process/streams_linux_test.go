// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenFails checks that nothing stays open when this process has no more descriptors.
func TestOpenFails(t *testing.T) {
	checkFDs(t)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	var order Order
	defer order.Close()
	failures := 0
	for more := range uint64(12) {
		open, watched := openFDs(), order.fd > 0
		first, err := unix.Dup(0) // the lowest number that is free
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(first)
		few := before
		few.Cur = uint64(first) + more
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Config{PipeStdin: more%2 == 0, Order: &order})
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			s.Close()
		} else {
			failures++
			if !errors.Is(err, unix.EMFILE) {
				t.Errorf("with %d descriptors: %v", more, err)
			}
		}
		if order.fd > 0 && !watched {
			open++
		}
		if now := openFDs(); now > open {
			t.Fatalf("with %d descriptors: %d are open, %d before", more, now, open)
		}
	}
	if failures < 5 {
		t.Errorf("it failed only %d times", failures)
	}
}

// TestFollowFails checks that a command without the terminal that was asked for is killed.
func TestFollowFails(t *testing.T) {
	checkFDs(t)
	s, err := Open(Config{Terminal: true})
	if err != nil {
		t.Fatal(err)
	}
	child, err := launchPlain(sh("sleep 600"), s)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := s.Follow(child); !errors.Is(err, ErrNoTerminal) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, %v", p, err)
	}
	if code, _, err := child.Wait(); err != nil || code != 137 {
		t.Errorf("code %d, %v", code, err)
	}
	if _, err := s.Files()[0].Write(nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("standard input is open: %v", err)
	}
}
