// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"

	"golang.org/x/sys/unix"
)

// TestConcurrentHolds shares one protector between many runs, each with names of its
// own, names of all, and a name that appears.
func TestConcurrentHolds(t *testing.T) {
	testenv.RunAsOrdinary(t)
	p := quickPlace(t)
	k := p.protector()
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			own := strconv.Itoa(i)
			for range 30 {
				h, err := k.Hold(p.watch("all", "own"+own, "git"+own))
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.Mkdir(p.path("git"+own), 0o700); err != nil {
					t.Error(err)
				}
				if found, err := h.Finish(); err != nil || len(found) != 1 || found[0].MovedTo == "" {
					t.Errorf("found %v, %v", found, err)
				}
				h.Release()
			}
		})
	}
	wait.Wait()
	check(t, k.Close())
	p.wantClean()
	if items := names(t, filepath.Join(p.state, quarantineDir)); len(items) != 2*8*30 {
		t.Errorf("%d files in quarantine", len(items))
	}
}

// TestDescriptors has more protectors come and go than a user may have descriptors of
// inotify: they come back, although the kernel closes them in its own time.
func TestDescriptors(t *testing.T) {
	testenv.NeedInotify(t)
	p := quickPlace(t)
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	check(t, err)
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	check(t, err)
	deadline := time.Now().Add(patience)
	// Other tests find as many descriptors as there were, or enough.
	enough := min(freeInotify(t), 50)
	defer func() {
		for freeInotify(t) < enough && time.Now().Before(deadline) {
			runtime.Gosched()
		}
	}()
	for got := 0; got <= min(limit, 1000)+10; {
		k := &Protector{State: p.state}
		h := p.hold(k, p.watch("x")...)
		if len(h.Weaker()) == 0 {
			got++
		}
		check(t, k.Close())
		if time.Now().After(deadline) {
			t.Fatalf("only %d protectors had inotify, and the limit is %d", got, limit)
		}
	}
	links, err := filepath.Glob("/proc/self/fd/*")
	check(t, err)
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == "anon_inode:inotify" {
			t.Error("a descriptor of inotify is open")
		}
	}
	p.wantClean()
}

// freeInotify returns how many descriptors of inotify this user may still have, at most 100. One
// that has watched nothing is free as soon as it is closed.
func freeInotify(t *testing.T) int {
	t.Helper()
	var open []int
	for len(open) < 100 {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			break
		}
		open = append(open, fd)
	}
	for _, fd := range open {
		check(t, unix.Close(fd))
	}
	return len(open)
}

// TestNoClaims holds nothing, and cleans a state directory without a journal.
func TestNoClaims(t *testing.T) {
	p := newPlace(t)
	r, err := Clean(p.state)
	if err != nil || len(r.Unknown) > 0 {
		t.Errorf("Clean: %+v, %v", r, err)
	}
	if _, err := Clean(filepath.Join(p.state, "none")); err != nil {
		t.Errorf("Clean of nothing: %v", err)
	}
	k := p.protector()
	h := p.hold(k)
	if len(p.finish(h)) > 0 || h.Weaker() != nil || cause(h) != nil {
		t.Error("something came of nothing")
	}
	if k.watcher != nil {
		t.Error("inotify was opened for nothing")
	}
}

// TestEventsEnd: a command that makes events faster than they are read does not keep the lock.
func TestEventsEnd(t *testing.T) {
	fd, err := unix.Open("/dev/zero", unix.O_RDONLY|unix.O_CLOEXEC, 0) // it always has more
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	(&Protector{watcher: &watcher{fd: fd, buf: make([]byte, 16<<10)}}).readEvents()
}
