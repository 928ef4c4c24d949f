// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func acquired(t testing.TB, state, workspace string) *slot {
	t.Helper()
	s, err := acquire(state, workspace, class{writes: true})
	must(t, err)
	t.Cleanup(s.release)
	return s
}

// A pair is the two directories of an overlay.
type pair struct{ upper, work string }

func layersOf(t testing.TB, s *slot, cache string) pair {
	t.Helper()
	if s.lock == nil {
		t.Fatal("all slots are taken")
	}
	upper, work, err := s.layers(cache)
	must(t, err)
	return pair{upper, work}
}

func TestSlots(t *testing.T) {
	testenv.RunAsOrdinary(t)
	state := t.TempDir()
	a := acquired(t, state, "/w")
	if got, want := filepath.Base(filepath.Dir(filepath.Dir(layersOf(t, a, "npm").upper))),
		"write-none-slot-0"; got != want {
		t.Errorf("the first run has %s", got)
	}
	b := acquired(t, state, "/w")
	if layersOf(t, a, "npm") == layersOf(t, b, "npm") {
		t.Error("two runs have one slot")
	}
	other := acquired(t, state, "/w2")
	if filepath.Dir(filepath.Dir(layersOf(t, other, "npm").upper)) == filepath.Dir(filepath.Dir(layersOf(t, a,
		"npm").upper)) {
		t.Error("two workspaces have one slot")
	}
	first := layersOf(t, a, "npm")
	must(t, os.WriteFile(filepath.Join(first.upper, "kept"), nil, 0o600))
	a.release()
	a.release()
	again := acquired(t, state, "/w")
	if layersOf(t, again, "npm") != first || !exists(filepath.Join(first.upper, "kept")) {
		t.Error("what a run has left is not there for the next one")
	}
	plainA, err := a.private("pip")
	must(t, err)
	plainB, err := b.private("pip")
	must(t, err)
	if plainA != plainB {
		t.Errorf("private directories %s and %s", plainA, plainB)
	}
	a.release()
}

// TestInherited: a slot is not free while a process that was started with its
// lock holds it.
func TestInherited(t *testing.T) {
	state := t.TempDir()
	a := acquired(t, state, "/w")
	copied, err := unix.FcntlInt(a.lock.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	must(t, err)
	first := layersOf(t, a, "npm")
	a.lock.Close() // as the end of this process would
	a.lock = nil
	if b := acquired(t, state, "/w"); layersOf(t, b, "npm") == first {
		t.Error("the slot was given away")
	}
	unix.Close(copied)
	if c := acquired(t, state, "/w"); layersOf(t, c, "npm") != first {
		t.Error("the slot is lost")
	}
}

func TestAllSlotsTaken(t *testing.T) {
	state := t.TempDir()
	seen := map[pair]bool{}
	for range maxSlots {
		seen[layersOf(t, acquired(t, state, "/w"), "npm")] = true
	}
	if len(seen) != maxSlots {
		t.Errorf("%d different slots of %d", len(seen), maxSlots)
	}
	over := acquired(t, state, "/w")
	if over.lock != nil {
		t.Error("there is one more slot than maxSlots")
	}
	if _, err := over.private("npm"); err != nil {
		t.Error(err)
	}
}

func TestAcquireFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for name, state := range map[string]string{"a file": file,
		"nothing": filepath.Join(t.TempDir(), "none")} {
		t.Run(name, func(t *testing.T) {
			if s, err := acquire(state, "/w", class{writes: true}); err == nil || s != nil {
				t.Errorf("got %v, %v", s, err)
			}
		})
	}
}

func TestListAndClear(t *testing.T) {
	testenv.RunAsOrdinary(t)
	state := t.TempDir()
	if list, err := List(state); err != nil || len(list) != 0 {
		t.Fatalf("nothing is %v, %v", list, err)
	}
	w := acquired(t, state, "/w")
	l := layersOf(t, w, "npm")
	must(t, os.WriteFile(filepath.Join(l.upper, "five"), []byte("12345"), 0o400))
	// What overlays and module caches leave: directories that cannot be entered or written.
	must(t, os.Mkdir(filepath.Join(l.work, "work"), 0))
	must(t, os.MkdirAll(filepath.Join(l.upper, "m", "in"), 0o755))
	must(t, os.Chmod(filepath.Join(l.upper, "m"), 0o555))
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, nil, 0o600))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(l.upper, "link")))
	p, err := w.private("pip")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(p, "x"), []byte("1"), 0o600))
	x := acquired(t, state, "/x")
	layersOf(t, x, "go-mod")
	x.release()

	want := []Entry{{"/w", "npm", 5, 2, true}, {"/w", "pip", 1, 1, true}}
	list, err := List(state)
	slices.SortFunc(list, func(a, b Entry) int { return int(b.Bytes - a.Bytes) })
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("the list is %v, %v; want %v", list, err, want)
	}
	done, err := Clear(state, "/w")
	if err != nil || !slices.Equal(done.InUse, []string{"/w"}) || len(done.Removed) != 0 ||
		!exists(filepath.Join(l.upper, "five")) {
		t.Errorf("in use: %v, %v", done, err)
	}
	w.release()
	done, err = Clear(state, "/w")
	if err != nil || !slices.Equal(done.Removed, []string{"/w"}) || len(done.InUse) != 0 {
		t.Errorf("released: %v, %v", done, err)
	}
	if exists(filepath.Dir(l.upper)) || !exists(outside) {
		t.Error("not cleared, or more than that")
	}
	done, err = Clear(state, "")
	if err != nil || !slices.Equal(done.Removed, []string{"/x"}) {
		t.Errorf("all: %v, %v", done, err)
	}
	if left, err := os.ReadDir(filepath.Join(state, cachesDir)); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// TestClearRace: a run that starts during Clear gets directories that exist and that
// no other run has.
func TestClearRace(t *testing.T) {
	state := t.TempDir()
	var wg sync.WaitGroup
	held := make(map[string]bool)
	var mu sync.Mutex
	errs := make(chan error, 8)
	for range 4 {
		wg.Go(func() { errs <- hold(state, &mu, held) })
		wg.Go(func() {
			for range 100 {
				if _, err := Clear(state, ""); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		})
	}
	wg.Wait()
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// hold takes slots and gives them back.
func hold(state string, mu *sync.Mutex, held map[string]bool) error {
	for range 100 {
		s, err := acquire(state, "/w", class{writes: true})
		if err != nil {
			return err
		}
		if s.lock == nil {
			return errors.New("no slot")
		}
		upper, work, err := s.layers("npm")
		if err != nil {
			return err
		}
		mu.Lock()
		if held[upper] {
			err = errors.New("two runs have one slot")
		}
		held[upper] = true
		mu.Unlock()
		if !exists(upper) || !exists(work) {
			err = errors.Join(err, errors.New("the directories are gone"))
		}
		mu.Lock()
		delete(held, upper)
		mu.Unlock()
		s.release()
		if err != nil {
			return err
		}
	}
	return nil
}
