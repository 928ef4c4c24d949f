// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/apply"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// anything is a judge that closes nothing.
func anything(*Policy) (func(sandbox.Access) error, error) {
	return func(sandbox.Access) error { return nil }, nil
}

// userStore is the store that All and Find look into.
func userStore(t *testing.T) Store {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("XDG_STATE_HOME", state)
	must(t, os.MkdirAll(filepath.Join(state, "sallyport"), 0o700))
	return Store{filepath.Join(state, "sallyport")}
}

// withChange is a stage over a directory in which a file was made. It stays locked.
func withChange(t *testing.T, s Store, dir string) *Stage {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	st := used(t, s, dir, executor.Staging{})
	id, err := apply.Identify(dir)
	must(t, err)
	must(t, st.Begin(Policy{Dir: dir, Entries: []Entry{}}, []Root{{Path: dir, ID: id}}, time.Now(), true))
	must(t, os.WriteFile(filepath.Join(st.Upper(0), "made"), []byte("x\n"), 0o600))
	must(t, st.End())
	return st
}

// TestMoved: a stage whose directory was moved, deleted or replaced disturbs no other, and can be discarded.
func TestMoved(t *testing.T) {
	for name, replaced := range map[string]bool{"moved": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			s, dir := userStore(t), t.TempDir()
			lost, good := withChange(t, s, filepath.Join(dir, "a")), withChange(t, s, filepath.Join(dir, "b"))
			lost.Unlock()
			good.Unlock()
			early, err := Find(t.Context(), anything, dir, lost.ID)
			must(t, err)
			must(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "c")))
			if replaced {
				must(t, os.Mkdir(filepath.Join(dir, "a"), 0o700))
			}
			all, err := All(t.Context())
			if err != nil || len(all) != 2 || !all[0].Moved || all[1].Moved || all[1].Changes != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			o, err := Find(t.Context(), anything, dir, good.ID)
			must(t, err)
			if now, err := o.Changes(t.Context()); err != nil || len(now) != 1 {
				t.Errorf("the other one: %v, %v", now, err)
			}
			if o, err = Find(t.Context(), anything, dir, lost.ID); err != nil {
				t.Fatal(err)
			}
			_, err = o.Changes(t.Context())
			_, applied := o.Apply(t.Context(), executor.ApplyOptions{})
			for call, err := range map[string]error{"changes": err, "apply": applied,
				"diff": o.Diff(t.Context(), new(bytes.Buffer))} {
				if !errors.Is(err, apply.ErrMoved) || !strings.Contains(err.Error(), "sallyport discard "+lost.ID) {
					t.Errorf("%s: %v", call, err)
				}
			}
			must(t, early.Discard(t.Context(), false)) // opened before
			if all, err := All(t.Context()); err != nil || len(all) != 1 || all[0].ID != good.ID {
				t.Errorf("after the discard: %+v, %v", all, err)
			}
		})
	}
}

// TestDiscardInUse: a stage that a command has mounted loses nothing, also by force.
func TestDiscardInUse(t *testing.T) {
	s, dir := userStore(t), filepath.Join(t.TempDir(), "w")
	st := withChange(t, s, dir)
	o, err := Find(t.Context(), anything, dir, st.ID)
	must(t, err)
	for name, paths := range map[string][]string{"all": nil, "a path": {"made"}} {
		for _, force := range []bool{false, true} {
			if err := o.Discard(t.Context(), force, paths...); !errors.Is(err, executor.ErrStageInUse) {
				t.Errorf("%s, force %t: %v", name, force, err)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(st.Upper(0), "made")); err != nil {
		t.Error(err)
	}
	st.Unlock()
	must(t, o.Discard(t.Context(), false))
}

// TestSynced: what was synced before the machine was started anew needs no force, but what a command wrote
// after that does.
func TestSynced(t *testing.T) {
	s, dir := userStore(t), filepath.Join(t.TempDir(), "w")
	st := withChange(t, s, dir)
	must(t, st.Begin(st.Policies[0], nil, time.Now(), true))
	st.sync()
	if st.covered(st.Commands) {
		t.Error("synced while a command runs")
	}
	must(t, st.End())
	st.sync()
	if !st.covered(st.Commands) || st.covered(st.Commands+1) {
		t.Error("not synced at the end of a command")
	}
	before := st.Boot
	st.Boot = "another"
	if err := st.synced(); err != nil {
		t.Errorf("synced before the restart: %v", err)
	}
	must(t, st.Begin(st.Policies[0], nil, time.Now(), true))
	must(t, st.End())
	if st.Boot != before {
		t.Errorf("a command after the restart began in %q", st.Boot)
	}
	if st.Boot = "another"; st.synced() == nil {
		t.Error("a command wrote more after that")
	}
	st.sync()
	if err := st.synced(); !errors.Is(err, executor.ErrNotSynced) {
		t.Errorf("synced after the restart only: %v", err)
	}
	st.Unlock()
}

// TestRestarted: what was staged before the machine was started anew is applied by force only, also when another
// command has used the stage since.
func TestRestarted(t *testing.T) {
	s, dir := userStore(t), filepath.Join(t.TempDir(), "w")
	st := withChange(t, s, dir)
	if st.Boot = "another"; bootID() == "" {
		t.Fatal("no boot_id")
	}
	must(t, st.Begin(st.Policies[0], nil, time.Now(), true))
	must(t, st.End())
	st.Unlock()
	o, err := Find(t.Context(), anything, dir, st.ID)
	must(t, err)
	if now, err := o.Changes(t.Context()); err != nil || len(now) != 1 {
		t.Errorf("changes: %v, %v", now, err)
	}
	if _, err := o.Apply(t.Context(), executor.ApplyOptions{}); !errors.Is(err, executor.ErrNotSynced) ||
		!strings.Contains(err.Error(), "changes --diff "+st.ID) {
		t.Errorf("apply: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		t.Error("it was applied")
	}
	if a, err := o.Apply(t.Context(), executor.ApplyOptions{Force: true}); err != nil || len(a.Applied) != 1 {
		t.Errorf("by force: %+v, %v", a, err)
	}
}
