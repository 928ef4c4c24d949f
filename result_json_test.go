// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/output"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestResultForm holds the JSON form, which other programs read.
func TestResultForm(t *testing.T) {
	r := &Result{
		Stdout:          newOutput(output.Snapshot{Head: []byte("\xff"), Total: 3, Omitted: 2}),
		StreamsLeftOpen: true, Error: "<e>",
	}
	const want = `{"type":"result","argv":[],"cwd":"","exit_code":0,"signal":0,"timed_out":false,"end":"","duration_ms":0,` +
		`"stdout":"�","stderr":"","output":"","stdout_bytes":3,"stderr_bytes":0,"omitted_bytes":2,` +
		`"stdout_base64":"/w==","stdout_omitted_bytes":2,` +
		`"sandbox":{"mode":"","network":"none","level":"","mechanism":[],"observed":false},"attempts":0,"denials":[],"survivors":0,` +
		`"streams_left_open":true,"error":"<e>"}`
	got, err := json.Marshal(json.RawMessage(encoded(r.MarshalJSON())))
	if err != nil || !json.Valid(got) {
		t.Fatal(err)
	}
	if got := string(encoded(r.MarshalJSON())); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func encoded(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestResultRoundTrip: decoding the JSON form and encoding it again changes nothing.
func TestResultRoundTrip(t *testing.T) {
	full := &Result{
		Run: "r", Args: []string{"sh", "-c", "x"}, Dir: "/w", ExitCode: 137, Signal: 9, End: EndOOM, Duration: 1500 * time.Millisecond,
		Stdout:    newOutput(output.Snapshot{Head: []byte("caf\xc3"), Tail: []byte("\xa9"), Total: 5}),
		Stderr:    newOutput(output.Snapshot{Head: []byte("\xfe"), Total: 1}),
		Output:    newOutput(output.Snapshot{Head: []byte("café"), Total: 6}),
		Survivors: []executor.Survivor{{PID: 1, Name: "a", Command: "a b"}, {PID: 2, Name: "c"}}, SurvivorsBy: executor.ByNamespace,
		HardLinks: []executor.HardLink{{Path: "/w/f", Links: 2}}, HardLinksOmitted: 3, OwnershipIgnored: 12,
		Quarantined:    []executor.Quarantined{{Path: "/w/.git", MovedTo: "/q", Why: "w", Grant: "--grant git"}},
		New:            []executor.New{{Path: "/w/.vscode/a", Grant: "--grant editor-config", More: 2}, {Path: "/w/sub/.git", Grant: "--grant git", Granted: true}},
		Limits:         []executor.Enforced{{Limit: executor.LimitMemory, Value: 1, By: executor.ByCgroupV2, Hit: true}},
		Sandbox:        event.Sandbox{Mode: "workspace-write", Network: sandbox.NetworkHost, Sandbox: executor.Sandbox{Level: "native", Mechanism: []string{"userns"}, Observed: true}},
		Approvals:      []event.ApprovalDecided{{ID: "r-1", Decision: approval.Approved, Source: approval.FromUser, WaitMS: 5, Message: "m", Rule: []string{"a", "b"}}},
		Notices:        []string{"n"},
		NetworkDenials: []executor.NetworkDenial{{Host: "h.example", Port: 443, Protocol: network.SOCKS5TCP, Reason: network.NotAllowed, Count: 2, FirstMS: 7}},
		First:          &Result{End: EndExited, ExitCode: 1, Duration: time.Second, Stdout: newOutput(output.Snapshot{Head: []byte("first"), Total: 9, Omitted: 4}), Output: newOutput(output.Snapshot{Head: []byte("first"), Total: 9, Omitted: 4}), denials: []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/y"}}}},
		Attempts:       make([]Attempt, 2), Withheld: []string{"TOKEN"}, Warnings: []string{"w"}, Error: "e",
	}
	cpu, n, bytes := 1500*time.Millisecond, 3, int64(7)
	full.Usage = executor.Usage{CPU: &cpu, User: &cpu, System: &cpu, PeakMemory: &bytes, PeakMemoryBy: executor.ByRusage, Read: &bytes, Written: &bytes, Processes: &n}
	full.SetDenials([]sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/x"}, Errno: "EROFS", Count: 2}}, 3)
	for range 30 {
		full.Survivors = append(full.Survivors, executor.Survivor{PID: 3, Name: "n"})
	}
	for _, test := range []struct {
		name string
		r    *Result
	}{{"zero", &Result{}}, {"full", full}} {
		t.Run(test.name, func(t *testing.T) {
			first := encoded(test.r.MarshalJSON())
			var back Result
			if err := json.Unmarshal(first, &back); err != nil {
				t.Fatal(err)
			}
			var a, b map[string]any
			if json.Unmarshal(first, &a) != nil || json.Unmarshal(encoded(back.MarshalJSON()), &b) != nil || !reflect.DeepEqual(a, b) {
				t.Errorf("%s\nbecame\n%s", first, encoded(back.MarshalJSON()))
			}
			if len(back.Survivors) != len(test.r.Survivors) || back.Duration != test.r.Duration || back.String() != test.r.String() || !reflect.DeepEqual(back.Usage, test.r.Usage) {
				t.Errorf("%v, want %v", &back, test.r)
			}
		})
	}
	for _, bad := range []string{`{`, `[]`, `{"survivors":-1}`, `{"survivors":99999999999}`, `{"attempts":-1}`, `{"survivors":0,"survivor_list":[{"pid":1}]}`} {
		if err := new(Result).UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// countingWriter counts calls of Write.
type countingWriter struct {
	bytes.Buffer
	calls int
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.calls++
	return w.Buffer.Write(p)
}

// TestWriteJSON checks that a result is one line, written at once.
func TestWriteJSON(t *testing.T) {
	r := &Result{Args: []string{"a<b"}, Error: "line\nbreak"}
	var w countingWriter
	if err := r.WriteJSON(&w); err != nil {
		t.Fatal(err)
	}
	want, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if w.calls != 1 || w.String() != string(want)+"\n" || !strings.Contains(w.String(), "a<b") {
		t.Errorf("%d calls wrote %q", w.calls, w.String())
	}
}

func TestResultString(t *testing.T) {
	denied := &Result{Args: []string{"/usr/bin/go", "test"}, ExitCode: 1, End: EndExited, Duration: 1200 * time.Millisecond}
	denied.SetDenials(make([]sandbox.Denial, 1), 1)
	for _, test := range []struct {
		want string
		r    *Result
	}{
		{"command: exit code 0 after 0s", &Result{}},
		{"go: exit code 1 after 1.2s, 2 denials", denied},
		{"sleep: timed out, exit code 124 after 1s", &Result{Args: []string{"sleep"}, ExitCode: 124, End: EndTimedOut, Duration: time.Second}},
	} {
		if got := test.r.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
