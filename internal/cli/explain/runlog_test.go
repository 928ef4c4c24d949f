// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestMain(m *testing.M) {
	if asChecks() {
		return
	}
	os.Exit(m.Run())
}

var begin = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func entry(run string, args ...string) Record {
	return Record{Start: begin, Flags: []string{"-s", "read-only"},
		Result: sallyport.Result{Run: run, Args: args, Dir: "/w", End: "exited"}}
}

// kept has a new log keep records, and reads them.
func kept(t *testing.T, records ...Record) Log {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := audit.Open(audit.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		body, err := r.Body()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.Append("other", json.RawMessage("{}")),
			l.Append(RecordKind, body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.Sync(t.Context()), l.Close()); err != nil {
		t.Fatal(err)
	}
	log, err := ReadLog(dir, false)
	if last, err := ReadLog(dir, true); err != nil || len(last.Records) != len(log.Records) {
		t.Errorf("%d records in the only file, want %d, %v", len(last.Records), len(log.Records), err)
	}
	if err != nil || log.Skipped > 0 || len(log.Records) != len(records) {
		t.Fatalf("%d records, %d skipped, %v", len(log.Records), log.Skipped, err)
	}
	return log
}

func TestBody(t *testing.T) {
	var printed sallyport.Result
	e := entry("one", "curl", "--token=abc", "https://a:b@h/")
	e.Flags = append(e.Flags, "-e", "API_KEY=secret")
	if err := json.Unmarshal([]byte(`{"stdout":"printed","stdout_bytes":7}`), &printed); err != nil {
		t.Fatal(err)
	}
	e.ExitCode, e.Duration, e.Stdout = 3, 1500*time.Millisecond, printed.Stdout
	e.Sandbox = event.Sandbox{Mode: "read-only", Sandbox: executor.Sandbox{Level: "native", Observed: true}}
	e.SetDenials([]sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/etc/x"}, Errno: "EROFS",
		Source: sandbox.Notified, Rule: "/=read", Count: 4}}, 2)
	e.Quarantined = []executor.Quarantined{{Path: "/w/.git", Why: "w"}}
	e.Survivors, e.Attempts = []executor.Survivor{{PID: 3, Name: "x"}}, make([]sallyport.Attempt, 1)
	got := kept(t, e).Records[0]
	if e.Args[1] != "--token=abc" {
		t.Error("the caller's words were changed")
	}
	if bytes.Contains(got.Line, []byte("printed")) || bytes.Contains(got.Line, []byte("abc")) ||
		bytes.Contains(got.Line, []byte("secret")) {
		t.Errorf("too much in %s", got.Line)
	}
	got.Line = nil
	want := Record{
		Version: 1, Start: begin, Flags: []string{"-s", "read-only", "-e", "API_KEY=***"}, Result: e.Result,
	}
	want.Args = []string{"curl", "--token=***", "https://a:***@h/"}
	want.Stdout, want.Output = want.Stdout.WithoutText(), sallyport.Output{Total: 7}
	want.Sandbox.Mechanism = []string{}
	if diff := cmp.Diff(toJSON(t, want.Result), toJSON(t, got.Result)); diff != "" || got.Version != 1 ||
		!got.Start.Equal(begin) || !slices.Equal(got.Flags, want.Flags) {
		t.Errorf("%d %v %q %s", got.Version, got.Start, got.Flags, diff)
	}
	t.Run("errors", func(t *testing.T) {
		if _, err := (Record{}).Body(); err == nil {
			t.Error("a run without an identity has a record")
		}
		log, err := ReadLog(filepath.Join(t.TempDir(), "missing"), true)
		if err != nil || len(log.Records) > 0 {
			t.Errorf("a log that is not there: %v, %v", log, err)
		}
		if _, err := ReadLog("\x00", false); err == nil {
			t.Error("a directory that cannot be")
		}
	})
}

func toJSON(t *testing.T, r sallyport.Result) string {
	t.Helper()
	b, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestLimits: whatever a run was, its line fits.
func TestLimits(t *testing.T) {
	long := strings.Repeat("\x01", 4000) // takes six bytes in JSON
	var ds []sandbox.Denial
	for i := range 200 {
		ds = append(ds, sandbox.Denial{Access: sandbox.Access{Op: sandbox.Write,
			Path: fmt.Sprintf("/%d%s", i, long)}, Source: sandbox.Notified})
	}
	many := slices.Repeat([]string{long}, 400)
	var moved []executor.Quarantined
	for range 100 {
		moved = append(moved, executor.Quarantined{Path: long, Why: "w"})
	}
	for _, test := range []struct {
		name   string
		change func(*Record)
		check  func(Record) bool
	}{
		{"denials", func(e *Record) { e.SetDenials(ds, 5) },
			func(r Record) bool {
				return len(r.Denials()) >= 5 && len(r.Denials())+r.DenialsOmitted == 205 &&
					r.Denials()[0].Path == ds[0].Path
			}},
		{"arguments", func(e *Record) { e.Args = many },
			func(r Record) bool {
				return len(r.Args) > 5 && len(r.Args) < 20 &&
					r.Args[len(r.Args)-1] == gap
			}},
		{"one argument", func(e *Record) { e.Args = []string{"x", strings.Repeat("y", 1<<20)} },
			func(r Record) bool { return len(r.Args) == 2 && len(r.Args[1]) == maxWord+len(gap) }},
		{"warnings", func(e *Record) { e.Warnings, e.Withheld = many, many }, func(r Record) bool { return r.Warnings == nil }},
		{"quarantine", func(e *Record) { e.Quarantined = moved }, func(r Record) bool { return len(r.Quarantined) > 0 }},
		{"an error", func(e *Record) { e.Error = strings.Repeat("z", 1<<20) }, func(r Record) bool { return len(r.Error) == maxError+len(gap) }},
		{"all at once", func(e *Record) {
			e.SetDenials(ds, 0)
			e.Args, e.Warnings, e.Quarantined, e.Flags = many, many, moved, nil
		}, func(r Record) bool { return r.Run == "r" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := entry("r", "x")
			test.change(&e)
			line, err := e.Body()
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := ParseRecord(line); len(line) > maxLine || !ok || !test.check(r) {
				t.Errorf("%d bytes, %+.300v", len(line), r)
			}
		})
	}
	t.Run("what cannot fit", func(t *testing.T) {
		e := entry("r")
		e.Dir = strings.Repeat(long, 100)
		if _, err := e.Body(); err == nil {
			t.Error("it fits")
		}
	})
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, data string
		ok         bool
	}{
		{"a record", `{"v":1,"run":"a","denials":[],"more":{"a":1}}`, true},
		{"nothing", "", false},
		{"half a record", `{"v":1,"run":"a"`, false},
		{"a list", "[]", false},
		{"an empty object", "{}", false},
		{"no identity", `{"v":1,"run":""}`, false},
		{"unknown words", `{"v":1,"run":"a","denials":[{"op":"fly"}]}`, false},
		{"zero bytes", "\x00\x00", false},
		{"a later version", `{"v":9,"run":"a","newer":[1]}`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if r, ok := ParseRecord([]byte(test.data)); ok != test.ok || ok && r.Run != "a" {
				t.Errorf("%q, %v", r.Run, ok)
			}
		})
	}
}

// FuzzParse: nothing makes it fail.
func FuzzParse(f *testing.F) {
	good, err := entry("good", "a").Body()
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", "{", string(good), string(good[:len(good)/2]), "\n",
		`{"v":1,"run":"x","start":"never"}`, `{"v":1,"run":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if r, ok := ParseRecord(data); ok && (r.Run == "" || !json.Valid(r.Line)) {
			t.Errorf("a record of %q", r.Line)
		}
	})
}

// TestMaskSurvivors: the command lines of what outlived the run are masked, too.
func TestMaskSurvivors(t *testing.T) {
	r := entry("a")
	r.Survivors = []executor.Survivor{{PID: 1, Name: "x", Command: "x --token abc"}, {PID: 2}}
	got, err := r.Body()
	if err != nil || strings.Contains(string(got), "abc") ||
		!strings.Contains(string(got), `"command":"x --token ***"`) {
		t.Errorf("%s %v", got, err)
	}
	if r.Survivors[0].Command != "x --token abc" {
		t.Error("the caller's survivors were changed")
	}
}

// TestShrinkHardLinks: a record keeps those of the links that fit, and counts the rest.
func TestShrinkHardLinks(t *testing.T) {
	e := entry("one", "true")
	e.HardLinks = slices.Repeat([]executor.HardLink{{Path: strings.Repeat("x", 4000), Links: 2}}, 200)
	if r := kept(t, e).Records[0]; len(r.HardLinks) == 0 || len(r.HardLinks)+r.HardLinksOmitted != 200 {
		t.Errorf("%d links, %d omitted", len(r.HardLinks), r.HardLinksOmitted)
	}
}
