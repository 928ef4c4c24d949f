// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package safefile

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func openLock(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestWaitEnds: a lock that another process keeps is an error that names the file. It is not
// taken after that, so that a third process gets it.
func TestWaitEnds(t *testing.T) {
	name := t.TempDir() + "/lock"
	holder, late, third := openLock(t, name), openLock(t, name), openLock(t, name)
	if err := WaitLock(holder); err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if err := waitLock(late, time.Millisecond, unix.LOCK_EX); !errors.As(err, &held) || held.Path != name ||
		!strings.Contains(err.Error(), name) {
		t.Fatalf("error %v", err)
	}
	if err := flock(int(holder.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := WaitLock(third); err != nil { // late stays open
		t.Error(err)
	}
}

// TestWaitTakes: a lock that is given back is taken.
func TestWaitTakes(t *testing.T) {
	name := t.TempDir() + "/lock"
	holder, next := openLock(t, name), openLock(t, name)
	if err := WaitLock(holder); err != nil {
		t.Fatal(err)
	}
	taken := make(chan error)
	go func() { taken <- WaitLock(next) }()
	holder.Close()
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if err := flock(int(openLock(t, name).Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err,
		unix.EWOULDBLOCK) {
		t.Errorf("it is not locked: %v", err)
	}
}

// TestLock: a lock that is shared is waited for as well; one try does not wait.
func TestLock(t *testing.T) {
	name := t.TempDir() + "/lock"
	holder, other := openLock(t, name), openLock(t, name)
	for _, hows := range [][2]int{{unix.LOCK_EX, unix.LOCK_SH}, {unix.LOCK_SH, unix.LOCK_EX}} {
		if err := Lock(holder, hows[0]); err != nil {
			t.Fatal(err)
		}
		if err := Lock(other, hows[1]|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("one try: %v", err)
		}
		var held *HeldError
		if err := waitLock(openLock(t, name), time.Millisecond, hows[1]); !errors.As(err, &held) {
			t.Errorf("a held lock: %v", err)
		}
		if err := Lock(holder, unix.LOCK_UN); err != nil {
			t.Error(err)
		}
		if err := Lock(other, hows[1]); err != nil {
			t.Error(err)
		}
		if err := Lock(other, unix.LOCK_UN); err != nil {
			t.Error(err)
		}
	}
}
