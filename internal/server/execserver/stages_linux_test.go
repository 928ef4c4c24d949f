// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A staged is what a server says of stages.
type staged struct {
	Stages  []struct{ ID, Name, Workspace string }
	Total   int `json:"changesTotal"`
	Changes []struct{ Path, Kind string }
	Part    []byte
	Applied []string
	Left    int
}

// stagedRun runs a script with a stage and returns the ID of that.
func stagedRun(d *driver, dir string, stage any, text string) string {
	d.t.Helper()
	var started struct {
		RunID   string
		Started bool
		Result  outcome
	}
	d.result(&started, "run/start", map[string]any{"args": []string{"--sandbox", "sh", "-c", text},
		"cwd":   dir,
		"stage": stage})
	if !started.Started {
		d.t.Fatalf("not started: %+v", started.Result)
	}
	var ended struct {
		Result struct {
			outcome
			Stage   struct{ ID string }
			Total   int `json:"changes_total"`
			Changes []struct{ Path string }
		}
	}
	d.result(&ended, "run/wait", map[string]any{"runId": started.RunID, "for": map[string]any{"exit": true}})
	r := &ended.Result
	if r.ExitCode != 0 || r.Stage.ID == "" || r.Total == 0 || len(r.Changes) != r.Total {
		d.t.Fatalf("%+v", r)
	}
	return r.Stage.ID
}

// TestStages: what a run with a stage writes is shown, applied and discarded by methods, and only by clients
// of its credential.
func TestStages(t *testing.T) {
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	o, kept := runOptions(), new(auditTrail)
	o.Audit = kept
	s := run(t, o)
	d, dir := drive(t, s.as("me"), nil), t.TempDir()
	first := stagedRun(d, dir, "both", "echo one >a")
	second := stagedRun(d, dir, "both", "cat a && echo two >b")
	if first != second {
		t.Fatalf("two stages: %s, %s", first, second)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the file itself: %v", err)
	}
	other := drive(t, s.as("another"), nil)
	of := map[string]any{"stageId": first}
	t.Run("another credential", func(t *testing.T) {
		var list staged
		if other.result(&list, "stage/list", nil); len(list.Stages) != 0 {
			t.Errorf("%+v", list)
		}
		for _, method := range []string{"stage/changes", "stage/diff", "stage/apply", "stage/discard"} {
			if why := other.refused(method, of); why != "unknownStage" {
				t.Errorf("%s: %s", method, why)
			}
		}
		if id := stagedRun(other, dir, "both", "test ! -e a && echo >c"); id == first {
			t.Error("a name finds the stage of another credential")
		}
	})
	var got staged
	if d.result(&got, "stage/list", nil); len(got.Stages) != 1 || got.Stages[0].ID != first ||
		got.Stages[0].Name != "both" {
		t.Errorf("%+v", got)
	}
	if d.result(&got, "stage/changes", of); got.Total != 2 || got.Changes[1].Path != "b" {
		t.Errorf("%+v", got)
	}
	if d.result(&got, "stage/diff", of); !strings.Contains(string(got.Part), "+two\n") {
		t.Errorf("%s", got.Part)
	}
	d.result(&got, "stage/apply", map[string]any{"stageId": first, "dryRun": true})
	d.result(&got, "stage/apply", map[string]any{"stageId": first, "paths": []string{"a"}})
	if text, _ := os.ReadFile(filepath.Join(dir, "a")); string(text) != "one\n" || len(got.Applied) != 1 ||
		got.Left != 1 {
		t.Errorf("%q, %+v", text, got)
	}
	if d.result(new(struct{}), "stage/discard", of); d.refused("stage/changes", of) != "unknownStage" {
		t.Error("the stage is still there")
	}
	if _, err := os.Stat(filepath.Join(dir, "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was discarded: %v", err)
	}
	want := []string{"stage applied " + first + " [a]", "stage discarded " + first + " []"}
	if !slices.Equal(kept.kept, want) {
		t.Errorf("the audit log has %q, want %q", kept.kept, want)
	}
}

// TestStageRefused: what cannot be staged does not run.
func TestStageRefused(t *testing.T) {
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d, dir := drive(t, run(t, runOptions()), nil), t.TempDir()
	for _, test := range []struct {
		name  string
		stage any
		args  []string
		fails string
	}{
		{"a number", 1, []string{"--sandbox", "touch", "a"}, "stage: invalid type"},
		{"an empty name", "", []string{"--sandbox", "touch", "a"}, "stage must not be empty"},
		{"no sandbox", true, []string{"touch", "a"}, "stage"},
		{"a name that is none", "../x", []string{"--sandbox", "touch", "a"}, "name"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := d.call("run/start", map[string]any{"args": test.args, "cwd": dir, "stage": test.stage})
			said := string(m.Result)
			if m.Error != nil {
				said = m.Error.Message
			}
			if !strings.Contains(said, test.fails) || strings.Contains(said, `"started":true`) {
				t.Errorf("%s", said)
			}
			if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
				t.Error("it ran without a stage")
			}
		})
	}
}

// TestStagedProcess: a process of the protocol may have a stage, and tells it.
func TestStagedProcess(t *testing.T) {
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	d, dir := drive(t, run(t, runOptions()), nil), t.TempDir()
	p := script("p", dir, "echo x >a")
	p["confine"] = map[string]any{"stage": map[string]any{}}
	p["sandbox"] = confined(dir)
	if m := d.call("process/start", p); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	d.ended("p")
	var page struct {
		Outcome struct {
			Stage struct {
				ID      string
				Total   int `json:"changesTotal"`
				Changes []struct{ Path string }
			}
		}
	}
	d.result(&page, "process/read", map[string]any{"processId": "p"})
	if s := page.Outcome.Stage; s.ID == "" || s.Total != 1 || s.Changes[0].Path != "a" {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("the file itself was written")
	}
}
