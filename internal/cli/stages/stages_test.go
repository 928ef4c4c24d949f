// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
)

// A bench runs verbs on stages of a test.
type bench struct {
	t        *testing.T
	e        *e2e.FakeStages
	dir      string
	terminal bool
	out      bytes.Buffer
	told     []string
	noted    []string // actions in the audit log
}

// newBench has a workspace with two stages, and another workspace with one.
func newBench(t *testing.T) *bench {
	dir := t.TempDir()
	change := func(kind, path string) executor.Change {
		return executor.Change{Root: dir, Path: path, Kind: kind, File: "file", Mode: "0644"}
	}
	gone, script := change(executor.ChangeDeleted, "old"), change(executor.ChangeMode, "run.sh")
	fifo := change(executor.ChangeAdded, "fifo")
	gone.File, gone.Entries, script.Mode, fifo.File = "dir", 2, "0755", "special"
	moved := change(executor.ChangeRenamed, "b")
	moved.From = "a"
	tasks := change(executor.ChangeAdded, ".vscode/tasks.json")
	odd := change(executor.ChangeAdded, "x\n\x1b[2Jy")
	tasks.RunsLater = true
	outside := change(executor.ChangeModified, "data")
	outside.Root = "/srv/x"
	created := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	return &bench{t: t, dir: dir, e: &e2e.FakeStages{All: []*e2e.FakeStage{
		{Described: executor.StageInfo{ID: "4f2a000000000000", Workspace: dir, Created: created},
			Has: []executor.Change{change(executor.ChangeAdded, "src/a.go"),
				change(executor.ChangeModified, "src/b.go"), change(executor.ChangeType, "link")},
			Text: "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+\tb\x1b[2J\n"},
		{Described: executor.StageInfo{ID: "4f2b000000000000", Name: "fix", Workspace: dir, Commands: 2,
			Changes: 7, Bytes: 2048, Created: created},
			Has: []executor.Change{gone, script, fifo, moved, tasks, odd, outside}},
		{Described: executor.StageInfo{ID: "77aa000000000000", Workspace: "/elsewhere", Created: created}},
	}}}
}

// do runs a verb and returns its exit code.
func (b *bench) do(words ...string) int {
	b.t.Helper()
	b.out.Reset()
	b.told = nil
	r := &sallyport.Runner{Executor: b.e}
	defer r.Close()
	env := &Env{Runner: r, Dir: b.dir, Home: "/home/x", Terminal: b.terminal,
		Print: func(text string) error { b.out.WriteString(text); return nil },
		PrintJSON: func(v any) error {
			e := json.NewEncoder(&b.out)
			e.SetEscapeHTML(false)
			return e.Encode(v)
		},
		Printing: func(write func(io.Writer) error) error { return write(&b.out) },
		Tell:     func(lines ...string) { b.told = append(b.told, lines...) },
		Note: func(kind string, body map[string]any) error {
			b.noted = append(b.noted, fmt.Sprint(kind, " ", body["action"], " ", body["paths"]))
			return nil
		},
	}
	i := slices.IndexFunc(Verbs(), func(v Verb) bool { return v.Name == words[0] })
	v := Verbs()[i]
	var o Options
	before, after, err := syntax.ParseFlagsAround(v.Flags(&o), words[1:])
	if err == nil {
		err = v.Run(b.t.Context(), env, &o, before, after)
	}
	var done explain.ExitCode
	switch {
	case errors.As(err, &done):
		return int(done)
	case err != nil:
		e := explain.Classify(err)
		b.told = append(b.told, e.String())
		return e.Code
	}
	return 0
}

// TestWhich: which stage and which paths words name.
func TestWhich(t *testing.T) {
	for _, test := range []struct {
		name, words string
		code        int
		want        string // the list, or in the message
	}{
		{"the newest of the workspace", "changes", 0, "x\\n"},
		{"an ID", "changes 4f2a000000000000", 0, "A  src/a.go\nM  src/b.go\nT  link\n"},
		{"a prefix", "changes 4f2a", 0, "A  src/a.go\nM  src/b.go\nT  link\n"},
		{"a prefix of 3 is a path", "changes 4f2", 125, `there is no stage "4f2", and the stage 4f2b ` +
			"has no change at such a path; sallyport changes 4f2b lists its changes"},
		{"a name", "changes fix run.sh", 0, "M  run.sh  (mode 0755)\n"},
		{"a path", "changes run.sh", 0, "M  run.sh  (mode 0755)\n"},
		{"two paths", "changes b run.sh", 0, "R  a -> b\nM  run.sh  (mode 0755)\n"},
		{"an ID and a path", "changes 4f2a src", 0, "A  src/a.go\nM  src/b.go\n"},
		{"an ID, -- and a path", "changes 4f2a -- src/../src/b.go", 0, "M  src/b.go\n"},
		{"-- and a path", "changes -- run.sh", 0, "M  run.sh  (mode 0755)\n"},
		{"what is an ID is a path after --", "changes -- 4f2a", 125, "no change at"},
		{"-- alone", "changes --", 0, "x\\n"},
		{"no ID before --", "changes 4f2c -- src", 125,
			`there is no stage "4f2c"; sallyport stages lists them`},
		{"an absolute path", "changes /srv/x", 0, "M  /srv/x/data\n"},
		{"no change there", "changes 4f2a other", 125, "/other; sallyport changes 4f2a lists its changes"},
		{"an empty word", "changes 4f2a ", 125, "an argument is empty"},
		{"flags behind words", "changes 4f2a src --json", 0, `"changes_total":2,`},
		{"no diff as JSON", "changes --diff --json", 125, "cannot be combined"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			code := b.do(strings.Split(test.words, " ")...)
			got := b.out.String() + strings.Join(b.told, "\n")
			if code != test.code || !strings.Contains(got, test.want) {
				t.Errorf("exit code %d: %s", code, got)
			}
			if strings.HasPrefix(test.want, "M  ") && got != test.want {
				t.Errorf("more: %s", got)
			}
		})
	}
}

// TestNoStage: a workspace without a stage, and a directory that is gone.
func TestNoStage(t *testing.T) {
	b := newBench(t)
	b.dir = "/nowhere"
	for _, test := range []struct{ words, dir, want string }{
		{"changes", "/nowhere", "this workspace has no stage; sallyport run --stage makes one"},
		{"apply x", "/nowhere", `there is no stage "x", and this workspace has none`},
		{"discard fix", "/nowhere", `there is no stage "fix", and this workspace has none`},
		{"changes", "", "the current directory no longer exists; name the stage by its ID"},
		{"changes 4f2a src", "", "use absolute paths"},
	} {
		b.dir = test.dir
		if code := b.do(strings.Fields(test.words)...); code != 125 || len(b.told) != 1 ||
			!strings.Contains(b.told[0], test.want) {
			t.Errorf("%s in %q: %d, %q", test.words, test.dir, code, b.told)
		}
	}
	if code := b.do("changes", "4f2a"); code != 0 {
		t.Errorf("by its ID: %d, %q", code, b.told)
	}
}

// TestList: names that would move a terminal do not, and JSON has them as they are.
func TestList(t *testing.T) {
	b := newBench(t)
	b.do("changes")
	want := "D  old/  (with 2 entries)\nM  run.sh  (mode 0755)\n" +
		"A  fifo  (a special file, which is never applied)\nR  a -> b\n" +
		"A  .vscode/tasks.json  (programs outside run or obey it)\nA  \"x\\n\\x1b[2Jy\"\nM  /srv/x/data\n"
	if diff := cmp.Diff(want, b.out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.do("changes", "--json")
	var got listing
	if err := json.Unmarshal(b.out.Bytes(), &got); err != nil || got.Total != 7 ||
		got.Changes[5].Path != "x\n\x1b[2Jy" || got.Stage.Name != "fix" {
		t.Errorf("%v: %s", err, b.out.String())
	}
	b.do("changes", "--json", "77aa")
	if s := b.out.String(); !strings.Contains(s, `"changes_total":0,"changes":[]`) {
		t.Errorf("no changes: %s", s)
	}
	b.do("stages")
	for _, part := range []string{"ID     NAME   CHANGES   SIZE", "\n4f2a   -      0 ",
		"\n4f2b   fix    7         2 KiB", "/elsewhere\n"} {
		if !strings.Contains(b.out.String(), part) {
			t.Errorf("%q is not in\n%s", part, b.out.String())
		}
	}
	b.do("stages", "--json")
	if s := b.out.String(); !strings.HasPrefix(s, `[{"id":"4f2a000000000000","name":"","workspace":`) ||
		!strings.Contains(s, `"commands":2,"changes":7,"bytes":2048,"created":"2026-11-28T10:00:00Z"}`) {
		t.Errorf("%s", s)
	}
	b.e.Failed = errors.New("one cannot be read")
	if code := b.do("stages"); code != 125 || b.out.Len() == 0 ||
		!strings.Contains(b.told[0], "one cannot be read") {
		t.Errorf("%d, %q: %s", code, b.told, b.out.String())
	}
	b.e.All, b.e.Failed = nil, nil
	if code := b.do("stages", "--json"); code != 0 || b.out.String() != "[]\n" {
		t.Errorf("none: %d, %s", code, b.out.String())
	}
}

// TestDiff: as it is, but on a terminal without what moves it.
func TestDiff(t *testing.T) {
	b := newBench(t)
	if b.do("changes", "--diff", "4f2a"); b.out.String() != b.e.All[0].Text {
		t.Errorf("%q", b.out.String())
	}
	b.terminal = true
	b.do("changes", "--diff", "4f2a")
	if got, want := b.out.String(), strings.ReplaceAll(b.e.All[0].Text, "\x1b", `\x1b`); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if code := b.do("changes", "--diff", "4f2a", "none"); code != 125 {
		t.Errorf("no change: %d", code)
	}
}

// TestApply: what is asked of the stage, and what is said and exited with.
func TestApply(t *testing.T) {
	conflict := []executor.Conflict{{Path: "src/a.go", Reason: "content"}, {Path: "x\ny", Reason: "deleted"}}
	mounted := "a command uses the stage; wait until it has ended: what it has mounted cannot be " +
		"discarded, also not with --force"
	overwrite := "; nothing was applied: use --force to overwrite, or name the paths to apply"
	inUse := &executor.StageError{Why: "a command uses the stage", Fix: "wait", Err: executor.ErrStageInUse}
	for _, test := range []struct {
		name, words string
		change      func(s *e2e.FakeStage)
		code        int
		out, told   string
	}{
		{"all", "apply 4f2a", nil, 0, "", ""},
		{"a part", "apply 4f2a src/a.go", nil, 0, "", ""},
		{"dry run", "apply --dry-run 4f2a", nil, 0, "src/a.go\nsrc/b.go\nlink\n", ""},
		{"json", "apply --json 4f2a link", nil, 0, `{"applied":["link"],"conflicts":[],"left":2}` + "\n", ""},
		{"conflicts", "apply 4f2a", func(s *e2e.FakeStage) { s.Conflicts = conflict }, 1, "",
			"conflict: src/a.go: its content was changed outside of the stage meanwhile|" +
				"conflict: \"x\\ny\": it was deleted outside of the stage meanwhile|" +
				"src/a.go was changed outside of the stage meanwhile, and 1 more" + overwrite},
		{"conflicts as JSON", "apply 4f2a --json", func(s *e2e.FakeStage) { s.Conflicts = conflict[:1] }, 1,
			`{"applied":[],"conflicts":[{"path":"src/a.go","reason":"content"}],"left":3}` + "\n",
			"src/a.go was changed outside of the stage meanwhile" + overwrite},
		{"force", "apply --force 4f2a", func(s *e2e.FakeStage) { s.Conflicts = conflict }, 0, "", ""},
		{"refused", "apply 4f2a", func(s *e2e.FakeStage) {
			s.Refused = []executor.Conflict{{Path: "fifo", Reason: "a special file"}}
		}, 1, "", "not applied: fifo: a special file"},
		{"a special file", "apply fix", func(s *e2e.FakeStage) {
			s.Refused = []executor.Conflict{{Path: "fifo", Reason: "a special file"}}
		}, 0, "", "not applied: fifo: a special file"},
		{"overwritten", "apply --force 4f2a", func(s *e2e.FakeStage) {
			s.Conflicts = conflict[:1]
		}, 0, "",
			"overwritten: src/a.go: its content was changed outside of the stage meanwhile"},
		{"in use", "apply 4f2a", func(s *e2e.FakeStage) { s.Err = inUse }, 1, "",
			"a command uses the stage; wait until it has ended, or add --force to use what the stage holds now"},
		{"another error", "apply 4f2a", func(s *e2e.FakeStage) { s.Err = errors.New("disk full") }, 125, "",
			"disk full"},
		{"apply after a restart", "apply 4f2a", func(s *e2e.FakeStage) {
			s.Err = &executor.StageError{Why: "it was restarted", Fix: "add --force",
				Err: executor.ErrNotSynced}
		}, 1, "", "it was restarted; add --force"},
		{"discard in use", "discard 4f2a", func(s *e2e.FakeStage) { s.Err = inUse }, 1, "", mounted},
		{"discard by force", "discard --force 4f2a", func(s *e2e.FakeStage) { s.Err = inUse }, 1, "",
			mounted},
		{"discard a part", "discard 4f2a src", nil, 0, "", ""},
		{"discard nothing", "discard 4f2a none", nil, 125, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			if test.change != nil {
				test.change(b.e.All[0])
				b.e.All[1].Refused = b.e.All[0].Refused
			}
			code := b.do(strings.Split(test.words, " ")...)
			if code != test.code || b.out.String() != test.out ||
				test.told != "" && strings.Join(b.told, "|") != test.told {
				t.Errorf("exit code %d\n%s%s", code, b.out.String(), strings.Join(b.told, "|"))
			}
			o := b.e.All[0].Options
			if o.DryRun != strings.Contains(test.words, "--dry-run") &&
				strings.HasPrefix(test.words, "apply") {
				t.Errorf("%+v", o)
			}
		})
	}
}

// TestNoted: what was done is in the audit log, and what was only shown is not.
func TestNoted(t *testing.T) {
	b := newBench(t)
	for _, words := range []string{"apply --dry-run 4f2a", "discard 4f2a none", "discard 4f2a src",
		"apply 4f2a"} {
		b.do(strings.Split(words, " ")...)
	}
	if len(b.noted) != 2 || !strings.HasPrefix(b.noted[0], "stage discarded [") ||
		b.noted[1] != "stage applied []" {
		t.Errorf("%q", b.noted)
	}
}
