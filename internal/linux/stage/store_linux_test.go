// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"encoding/json"
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// used makes or takes a stage, and unlocks it at the end.
func used(t *testing.T, s Store, dir string, a executor.Staging) *Stage {
	t.Helper()
	st, _, err := s.Use(dir, dir, &a)
	must(t, err)
	t.Cleanup(st.Unlock)
	return st
}

func newStore(t *testing.T) Store {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(state, 0o700))
	return Store{state}
}

func TestUse(t *testing.T) {
	s := newStore(t)
	a := used(t, s, "/w", executor.Staging{Name: "one"})
	if _, _, err := s.Use("/w", "/w/sub", &executor.Staging{Name: "one"}); !errors.Is(err,
		executor.ErrStageInUse) {
		t.Errorf("in use: %v", err)
	}
	a.Unlock()
	if b := used(t, s, "/w/sub", executor.Staging{Name: "one"}); b.ID != a.ID {
		t.Errorf("a directory of the workspace has %s, want %s", b.ID, a.ID)
	} else {
		b.Unlock()
	}
	if b := used(t, s, "/other", executor.Staging{Name: "one"}); b.ID == a.ID {
		t.Error("another workspace has the same stage")
	}
	if b := used(t, s, "/w", executor.Staging{Name: "one", Owner: "client"}); b.ID == a.ID {
		t.Error("another owner has the same stage")
	}
	if _, _, err := s.Use("/w", "/w", &executor.Staging{ID: a.ID, Owner: "client"}); !errors.Is(err,
		executor.ErrNoStage) {
		t.Errorf("another owner, by id: %v", err)
	}
	if b := used(t, s, "/w", executor.Staging{ID: a.ID}); b.ID != a.ID {
		t.Error("not the stage with the id")
	}
	all, err := s.List()
	if err != nil || len(all) != 3 || all[0].ID != a.ID {
		t.Errorf("%d stages, %v", len(all), err)
	}
}

func TestOpen(t *testing.T) {
	s := newStore(t)
	a := used(t, s, "/w", executor.Staging{Name: "one"})
	b := used(t, s, "/w", executor.Staging{})
	for _, test := range []struct{ name, dir, id, want string }{
		{"id", "/", a.ID, a.ID}, {"prefix", "/", a.ID[:6], a.ID}, {"name", "/w/sub", "one", a.ID},
		{"newest", "/w", "", b.ID}, {"name elsewhere", "/v", "one", ""}, {"short prefix", "/", a.ID[:3], ""},
		{"none there", "/v", "", ""}, {"a path", "/w", "../" + a.ID, ""},
		{"empty prefix of all", "/w", "-", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			st, err := s.Open(test.dir, test.id)
			if test.want == "" {
				if !errors.Is(err, executor.ErrNoStage) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || st.ID != test.want {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
}

// TestDamaged: what users or a crash did to a stage is an error about this one.
func TestDamaged(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(r *Record) any // nil for none
		text   string
	}{
		{"empty", nil, ""},
		{"no object", nil, "[]"},
		{"unknown member", nil, `{"form":1,"id":"x","workspace":"/w","created":1,"more":1}`},
		{"another form", func(r *Record) any { r.Form = 9; return r }, ""},
		{"another id", func(r *Record) any { r.ID = strings.Repeat("0", idLength); return r }, ""},
		{"a workspace that is not clean", func(r *Record) any { r.Workspace = "/w/../etc"; return r }, ""},
		{"a root that is not absolute", func(r *Record) any { r.Roots = []Root{{Path: "w"}}; return r }, ""},
		{"the whole disk", func(r *Record) any { r.Roots = []Root{{Path: "/"}}; return r }, ""},
		{"a root twice", func(r *Record) any { r.Roots = []Root{{Path: "/w"}, {Path: "/w"}}; return r }, ""},
		{"a name that is an option", func(r *Record) any { r.Name = "--all"; return r }, ""},
		{"a policy without a directory", func(r *Record) any { r.Policies = []Policy{{}}; return r }, ""},
		{"an entry that is invalid", func(r *Record) any {
			r.Policies = []Policy{{Dir: "/w", Entries: []Entry{{Path: "", Level: sandbox.LevelWrite}}}}
			return r
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t)
			good, st := used(t, s, "/w", executor.Staging{}), used(t, s, "/w", executor.Staging{Name: "bad"})
			text := []byte(test.text)
			if test.change != nil {
				r := st.Record
				var err error
				text, err = json.Marshal(test.change(&r))
				must(t, err)
			}
			must(t, os.WriteFile(filepath.Join(st.Dir(), recordFile), text, 0o600))
			all, err := s.List()
			var e *executor.StageError
			if len(all) != 1 || all[0].ID != good.ID || !errors.As(err, &e) ||
				!strings.Contains(e.Error(), st.ID) {
				t.Errorf("%d stages, %v", len(all), err)
			}
			if _, err := s.Open("/w", st.ID); err == nil || errors.Is(err, executor.ErrNoStage) {
				t.Errorf("open: %v", err)
			}
			if _, made, err := s.Use("/w", "/w", &executor.Staging{Name: "other"}); err != nil || !made {
				t.Errorf("another stage: %v", err)
			}
			st.Unlock()
			if err := s.forgetUnread(st.ID); err != nil {
				t.Errorf("discard: %v", err)
			}
			if all, err := s.List(); len(all) != 2 || err != nil {
				t.Errorf("then %d stages, %v", len(all), err)
			}
		})
	}
}

// TestBegin: a record is what it was where a run cannot begin.
func TestBegin(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o640))
	must(t, os.Chmod(dir, 0o750))
	st := used(t, s, dir, executor.Staging{})
	id, err := apply.Identify(dir)
	must(t, err)
	p := PolicyOf(sandbox.WorkspaceWrite(dir).Bind(sandbox.Places{Dir: dir}), dir, "")
	roots := []Root{{Path: dir, ID: id}, {Path: filepath.Join(dir, "f"), File: true, ID: id}}
	must(t, st.Begin(p, roots, time.Unix(1, 0), true))
	copied, err := os.Stat(st.Copy(1))
	if err != nil || copied.Mode() != 0o640 || copied.Size() != 4 {
		t.Errorf("the copy: %v, %v", copied, err)
	}
	if info, err := os.Stat(st.Upper(0)); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the upper directory: %v, %v", info, err)
	}
	missing := []Root{{Path: filepath.Join(dir, "none"), ID: id}}
	if err := st.Begin(p, missing, time.Unix(1, 0), true); err == nil || len(st.Roots) != 2 ||
		st.Commands != 1 {
		t.Errorf("a root that is missing: %v, %+v", err, st.Record)
	}
	again, err := s.Open(dir, st.ID)
	must(t, err)
	if again.Commands != 1 || len(again.Roots) != 2 || again.Began != 1e9 || len(again.Policies) != 1 {
		t.Errorf("%+v", again.Record)
	}
	policy, err := again.Policies[0].Sandbox()
	if err != nil || policy.LevelAt(dir+"/x") != sandbox.LevelWrite ||
		policy.LevelAt("/etc") != sandbox.LevelRead {
		t.Errorf("%v, %v", policy, err)
	}
	must(t, st.End())
	must(t, st.Forget())
	if left, err := os.ReadDir(filepath.Join(s.State, storeDir)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestLeftOver: what killed processes have left of stages is removed, and no stage.
func TestLeftOver(t *testing.T) {
	s := newStore(t)
	used(t, s, "/w", executor.Staging{}).Unlock()
	all := filepath.Join(s.State, storeDir)
	for _, name := range []string{newPrefix + "0", oldPrefix + "1"} {
		must(t, os.MkdirAll(filepath.Join(all, name, "0", "upper"), 0o700))
	}
	st := used(t, s, "/w", executor.Staging{Name: "x"})
	if list, err := s.List(); len(list) != 2 || err != nil {
		t.Errorf("%d stages, %v", len(list), err)
	}
	must(t, st.Forget())
	if left, err := os.ReadDir(all); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
