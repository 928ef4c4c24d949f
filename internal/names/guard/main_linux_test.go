// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// childVar makes this binary a process that holds names instead of testing.
const childVar = "SALLYPORT_TEST_GUARD"

func TestMain(m *testing.M) {
	if what := os.Getenv(childVar); what != "" {
		os.Exit(child(what))
	}
	goleak.VerifyTestMain(m)
}

// patience bounds waits for things that come at once unless something is wrong.
const patience = time.Minute

// A place is a state directory and a workspace.
type place struct {
	t           testing.TB
	state, work string
}

func newPlace(t testing.TB) place {
	t.Helper()
	return placeIn(t, t.TempDir())
}

// quickPlace is newPlace in memory, where it is available: file systems on disks
// slow down where much is made and removed.
func quickPlace(t testing.TB) place {
	t.Helper()
	top, err := os.MkdirTemp("/dev/shm", "sallyport-guard-") //nolint:usetesting // that one is on a disk
	if err != nil {
		return newPlace(t)
	}
	t.Cleanup(func() { check(t, os.RemoveAll(top)) })
	return placeIn(t, top)
}

// placeIn makes the two directories in top.
func placeIn(t testing.TB, top string) place {
	t.Helper()
	top, err := filepath.EvalSymlinks(top)
	if err != nil {
		t.Fatal(err)
	}
	p := place{t, filepath.Join(top, "state"), filepath.Join(top, "work")}
	for _, dir := range []string{p.state, p.work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// protector returns a protector that is closed at the end.
func (p place) protector() *Protector {
	k := &Protector{State: p.state}
	p.t.Cleanup(func() {
		if err := k.Close(); err != nil {
			p.t.Errorf("Close: %v", err)
		}
	})
	return k
}

func (p place) path(name string) string { return filepath.Join(p.work, name) }

// watch claims watches at the names.
func (p place) watch(names ...string) []Claim {
	var list []Claim
	for _, n := range names {
		list = append(list, Claim{Path: p.path(n), Why: "git"})
	}
	return list
}

// cover makes a file and claims it as one that a mount covers.
func (p place) cover(name string) Claim {
	p.t.Helper()
	check(p.t, os.WriteFile(p.path(name), nil, 0o600))
	id := inode(p.t, p.path(name))
	return Claim{Path: p.path(name), Dev: id.dev, Ino: id.ino, Why: "protected"}
}

// replace puts another file at the name, as an editor does.
func (p place) replace(name string) {
	p.t.Helper()
	check(p.t, errors.Join(os.WriteFile(p.path("new"), nil, 0o600), os.Rename(p.path("new"), p.path(name))))
}

// hold is Hold that must work.
func (p place) hold(k *Protector, claims ...Claim) *Hold {
	p.t.Helper()
	h, err := k.Hold(claims)
	if err != nil {
		p.t.Fatalf("Hold: %v", err)
	}
	return h
}

// finish is Finish that must work.
func (p place) finish(h *Hold) []Found {
	p.t.Helper()
	found, err := h.Finish()
	if err != nil {
		p.t.Fatalf("Finish: %v", err)
	}
	return found
}

// exists reports whether something stands at the path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// inode returns the identity of what stands at the path.
func inode(t testing.TB, path string) ident {
	t.Helper()
	l, err := statAt(unix.AT_FDCWD, path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return l.ident
}

// names returns what is in the directory, sorted.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// wantClean fails unless nothing is in the workspace but what is told, and the journal, if there is
// one, is empty.
func (p place) wantClean(want ...string) {
	p.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), names(p.t, p.work)); diff != "" {
		p.t.Errorf("in the workspace (-want +got):\n%s", diff)
	}
	for _, name := range names(p.t, filepath.Join(p.state, journalDir)) {
		if name != lockFile {
			p.t.Errorf("left in the journal: %s", name)
		}
	}
}

// check fails the test for an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cause returns why h is broken, or nil.
func cause(h *Hold) error {
	h.protector.mu.Lock()
	defer h.protector.mu.Unlock()
	if h.broken == nil {
		return nil
	}
	return h.broken
}

// whenBroken returns a channel that is closed when h is broken.
func whenBroken(h *Hold) <-chan struct{} {
	c := make(chan struct{})
	h.OnBroken(func(error) { close(c) })
	return c
}

// await waits for the channel to be closed.
func await(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
		t.Fatalf("%s did not happen", what)
	}
}

// failCall makes one of the protector's calls fail.
func failCall(k *Protector, call string, err error) {
	k.fail = func(c string) error {
		if c == call {
			return err
		}
		return nil
	}
}
