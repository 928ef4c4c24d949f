// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// writerEnv makes this program write records: DIRECTORY,NAME,COUNT,SIZE.
const writerEnv = "SALLYPORT_TEST_RUNLOG"

func TestMain(m *testing.M) {
	if asChecks() {
		return
	}
	if job := os.Getenv(writerEnv); job != "" {
		var count, size int
		words := strings.Split(job, ",")
		if _, err := fmt.Sscan(words[2], &count); err != nil {
			panic(err)
		}
		if _, err := fmt.Sscan(words[3], &size); err != nil {
			panic(err)
		}
		for i := range count {
			if err := AppendRecord(words[0], entry(fmt.Sprintf("%s-%d", words[1], i),
				strings.Repeat("x", size))); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var begin = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func entry(run string, args ...string) Record {
	return Record{Start: begin, Flags: []string{"-s", "read-only"},
		Result: sallyport.Result{Run: run, Args: args, Dir: "/w", End: "exited"}}
}

// runs lists what a directory has.
func runs(t *testing.T, directory string) []string {
	t.Helper()
	log, err := ReadLog(directory)
	if err != nil || log.Skipped > 0 {
		t.Fatalf("%d lines skipped, %v", log.Skipped, err)
	}
	var names []string
	for _, r := range log.Records {
		names = append(names, r.Run)
	}
	return names
}

func TestAppend(t *testing.T) {
	directory := ownDirectory(t)
	if got := runs(t, directory); got != nil {
		t.Errorf("%q in an empty directory", got)
	}
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
	if err := AppendRecord(directory, e); err != nil {
		t.Fatal(err)
	}
	if e.Args[1] != "--token=abc" {
		t.Error("the caller's words were changed")
	}
	log, err := ReadLog(directory)
	if err != nil || len(log.Records) != 1 {
		t.Fatalf("%+v %v", log, err)
	}
	got := log.Records[0]
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
	st, err := os.Stat(filepath.Join(directory, fileName))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st.Mode(), err)
	}
	t.Run("errors", func(t *testing.T) {
		if err := AppendRecord(directory, Record{}); err == nil {
			t.Error("a run without an identity was written")
		}
		if err := AppendRecord(filepath.Join(directory, "missing"), e); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a missing directory: %v", err)
		}
		if _, err := ReadLog("\x00"); err == nil {
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
			line, err := e.line()
			if err != nil {
				t.Fatal(err)
			}
			log := ParseLog(line)
			if len(line) > maxLine || len(log.Records) != 1 || !test.check(log.Records[0]) {
				t.Errorf("%d bytes, %+.300v", len(line), log)
			}
		})
	}
	t.Run("what cannot fit", func(t *testing.T) {
		e := entry("r")
		e.Dir = strings.Repeat(long, 100)
		if _, err := e.line(); err == nil {
			t.Error("it fits")
		}
	})
}

// TestRotation: a full file is set aside, one older file is kept, and nothing is
// missing in the middle.
func TestRotation(t *testing.T) {
	directory := ownDirectory(t)
	word := strings.Repeat("x", 15<<10)
	const n = 300
	for i := range n {
		if err := AppendRecord(directory, entry(fmt.Sprint(i), word)); err != nil {
			t.Fatal(err)
		}
	}
	got := runs(t, directory)
	for i, name := range got {
		if want := fmt.Sprint(n - len(got) + i); name != want {
			t.Fatalf("record %d is %s, want %s", i, name, want)
		}
	}
	names, err := filepath.Glob(directory + "/*")
	if err != nil || len(names) != 2 || len(got) < maxFile/(16<<10) {
		t.Errorf("%d records in %q", len(got), names)
	}
	for _, name := range names {
		if st, err := os.Stat(name); err != nil || st.Size() > maxFile {
			t.Errorf("%s: %v %v", name, st, err)
		}
	}
}

// TestProcesses: lines of several processes neither mix nor get lost, also where a
// file is set aside in the middle.
func TestProcesses(t *testing.T) {
	for _, test := range []struct {
		name                   string
		processes, count, size int
		all                    bool // nothing may be gone
	}{
		{"small", 6, 50, 100, true},
		{"with one change of files", 6, 40, 6000, true},
		{"with many", 6, 100, 15000, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			directory := ownDirectory(t)
			var all []*exec.Cmd
			for i := range test.processes {
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s,p%d,%d,%d", writerEnv, directory, i,
					test.count, test.size))
				cmd.Stderr = os.Stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				all = append(all, cmd)
			}
			for _, cmd := range all {
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
			}
			got := runs(t, directory)
			unique := slices.Compact(slices.Sorted(slices.Values(got)))
			if len(unique) != len(got) {
				t.Errorf("%d records, %d of them different", len(got), len(unique))
			}
			if want := test.processes * test.count; test.all && len(got) != want {
				t.Errorf("%d records, want %d", len(got), want)
			}
			if len(got) < 60 {
				t.Errorf("only %d records", len(got))
			}
		})
	}
}

func TestParse(t *testing.T) {
	line := func(run string) string { return `{"v":1,"run":"` + run + `","denials":[],"more":{"a":1}}` }
	for _, test := range []struct {
		name, data, want string
		skipped          int
	}{
		{"nothing", "", "", 0},
		{"empty lines", "\n\n" + line("a") + "\n\n", "a", 0},
		{"the last one without its end", line("a") + "\n" + line("b"), "a b", 0},
		{"half a line", line("a") + "\n" + line("b")[:20], "a", 1},
		{"half a line before another one", line("a")[:20] + line("b") + "\n" + line("c"), "b c", 1},
		{"no JSON", "hello\n" + line("a"), "a", 1},
		{"other JSON", "[]\n{}\n3\n" + line("a"), "a", 3},
		{"no identity", line(""), "", 1},
		{"unknown words", `{"v":1,"run":"a","denials":[{"op":"fly"}]}` + "\n" + line("b"), "b", 1},
		{"zero bytes", "\x00\x00\n" + line("a"), "a", 1},
		{"a later version", `{"v":9,"run":"a","newer":[1]}`, "a", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := ParseLog([]byte(test.data))
			var names []string
			for _, r := range log.Records {
				names = append(names, r.Run)
			}
			if got := strings.Join(names, " "); got != test.want || log.Skipped != test.skipped {
				t.Errorf("%q and %d skipped, want %q and %d", got, log.Skipped, test.want, test.skipped)
			}
		})
	}
}

// FuzzParse: nothing makes it fail, and no line beside a good one loses it.
func FuzzParse(f *testing.F) {
	good, err := entry("good", "a").line()
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"", "{", string(good), string(good[:len(good)/2]), "\n",
		`{"v":1,"run":"x","start":"never"}`, `{"v":1,"run":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, r := range ParseLog(data).Records {
			if r.Run == "" || len(r.Line) == 0 || !json.Valid(r.Line) {
				t.Errorf("a record of %q", r.Line)
			}
		}
		around := slices.Concat(data, []byte("\n"), good, data)
		if !slices.ContainsFunc(ParseLog(around).Records, func(r Record) bool { return r.Run == "good" }) {
			t.Errorf("the good line is lost in %q", around)
		}
	})
}

// TestMaskSurvivors: the command lines of what outlived the run are masked, too.
func TestMaskSurvivors(t *testing.T) {
	r := entry("a")
	r.Survivors = []executor.Survivor{{PID: 1, Name: "x", Command: "x --token abc"}, {PID: 2}}
	got, err := r.line()
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
	directory := ownDirectory(t)
	e := entry("one", "true")
	e.HardLinks = slices.Repeat([]executor.HardLink{{Path: strings.Repeat("x", 4000), Links: 2}}, 200)
	if err := AppendRecord(directory, e); err != nil {
		t.Fatal(err)
	}
	log, err := ReadLog(directory)
	if err != nil || len(log.Records) != 1 {
		t.Fatalf("%+v %v", log, err)
	}
	if r := log.Records[0]; len(r.HardLinks) == 0 || len(r.HardLinks)+r.HardLinksOmitted != 200 {
		t.Errorf("%d links, %d omitted", len(r.HardLinks), r.HardLinksOmitted)
	}
}

// ownDirectory makes a directory as state directories are.
func ownDirectory(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAppendFollowsNoLink: what has taken the place of the state directory is not written to.
func TestAppendFollowsNoLink(t *testing.T) {
	outside := ownDirectory(t)
	link := filepath.Join(t.TempDir(), "state")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	err := AppendRecord(link, entry("r-1", ""))
	names, _ := os.ReadDir(outside)
	if err == nil || len(names) > 0 {
		t.Errorf("%v, %v", err, names)
	}
}
