// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/test/e2e"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestResultJSON(t *testing.T) {
	r, _ := fakeRunner(nil, func(spec *executor.Spec, p *e2e.FakeProcess) {
		spec.OnOutput(executor.Stdout, []byte("a\xffb & <c>\n"))
		spec.OnOutput(executor.Stderr, []byte("touch: cannot touch '/etc/x': Read-only file system\n"))
		p.Exit = executor.Exit{Code: 1, Sandbox: executor.Sandbox{Level: "native",
			Mechanism: []string{"userns"}}}
	})
	defer r.Close()
	res, err := r.Run(t.Context(), &Cmd{Args: []string{"sh", "x"}, Dir: "/w",
		EnvPolicy: EnvPolicy{Base: []string{"A_KEY=1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Run) != 32 {
		t.Errorf("the run has the identity %q", res.Run)
	}
	res.Duration, res.Run = 12*time.Millisecond, "r1"
	got, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"result","argv":["sh","x"],"cwd":"/w","exit_code":1,"signal":0,"timed_out":false,"end":"exited",` +
		`"duration_ms":12,"stdout":"a\ufffdb \u0026 \u003cc\u003e\n","stderr":"touch: cannot touch '/etc/x': Read-only file system\n",` +
		`"output":"a\ufffdb \u0026 \u003cc\u003e\ntouch: cannot touch '/etc/x': Read-only file system\n",` +
		`"stdout_bytes":10,"stderr_bytes":52,"omitted_bytes":0,"stdout_base64":"Yf9iICYgPGM+Cg==",` +
		`"sandbox":{"mode":"read-only","network":"none","level":"native","mechanism":["userns"],"observed":false},"attempts":1,` +
		`"denials":[{"op":"write","path":"/etc/x","addr":"","call":"","errno":"EROFS","source":"guessed","pid":0,"program":"","rule":"/=read","grant":"--rw /etc/x","count":1}],` +
		`"survivors":0,"withheld":["A_KEY"],"run":"r1"}`
	if string(got) != strings.ReplaceAll(want, `\ufffd`, "\ufffd") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

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
		Run: "r", Args: []string{"sh", "-c", "x"}, Dir: "/w", ExitCode: 137, Signal: 9, End: EndOOM,
		Duration:    1500 * time.Millisecond,
		Stdout:      newOutput(output.Snapshot{Head: []byte("caf\xc3"), Tail: []byte("\xa9"), Total: 5}),
		Stderr:      newOutput(output.Snapshot{Head: []byte("\xfe"), Total: 1}),
		Output:      newOutput(output.Snapshot{Head: []byte("café"), Total: 6}),
		Survivors:   []executor.Survivor{{PID: 1, Name: "a", Command: "a b"}, {PID: 2, Name: "c"}},
		SurvivorsBy: executor.ByNamespace,
		HardLinks:   []executor.HardLink{{Path: "/w/f", Links: 2}}, HardLinksOmitted: 3, OwnershipIgnored: 12,
		Quarantined: []executor.Quarantined{{Path: "/w/.git", MovedTo: "/q", Why: "w",
			Grant: "--grant git"}},
		New: []executor.New{{Path: "/w/.vscode/a", Grant: "--grant editor-config", More: 2},
			{Path: "/w/sub/.git", Grant: "--grant git", Granted: true}},
		Limits: []executor.Enforced{{Limit: executor.LimitMemory, Value: 1,
			By: executor.ByCgroupV2, Hit: true}},
		Sandbox: event.Sandbox{Mode: "workspace-write", Network: sandbox.NetworkHost,
			Sandbox: executor.Sandbox{Level: "native", Mechanism: []string{"userns"}, Observed: true}},
		Approvals: []event.ApprovalDecided{{ID: "r-1", Decision: approval.Approved,
			Source: approval.FromUser, WaitMS: 5, Message: "m", Rule: []string{"a", "b"}}},
		Notices: []string{"n"},
		NetworkDenials: []executor.NetworkDenial{{Host: "h.example", Port: 443, Protocol: network.SOCKS5TCP,
			Reason: network.NotAllowed, Count: 2, FirstMS: 7}},
		First: &Result{End: EndExited, ExitCode: 1, Duration: time.Second,
			Stdout:  newOutput(output.Snapshot{Head: []byte("first"), Total: 9, Omitted: 4}),
			Output:  newOutput(output.Snapshot{Head: []byte("first"), Total: 9, Omitted: 4}),
			denials: []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/y"}}}},
		Attempts: make([]Attempt, 2), Withheld: []string{"TOKEN"}, Warnings: []string{"w"}, Error: "e",
	}
	cpu, n, bytes := 1500*time.Millisecond, 3, int64(7)
	full.Usage = executor.Usage{CPU: &cpu, User: &cpu, System: &cpu, PeakMemory: &bytes,
		PeakMemoryBy: executor.ByRusage, Read: &bytes, Written: &bytes, Processes: &n}
	full.SetDenials([]sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/x"}, Errno: "EROFS",
		Count: 2}}, 3)
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
			if json.Unmarshal(first, &a) != nil || json.Unmarshal(encoded(back.MarshalJSON()), &b) != nil ||
				!reflect.DeepEqual(a, b) {
				t.Errorf("%s\nbecame\n%s", first, encoded(back.MarshalJSON()))
			}
			if len(back.Survivors) != len(test.r.Survivors) || back.Duration != test.r.Duration ||
				back.String() != test.r.String() || !reflect.DeepEqual(back.Usage, test.r.Usage) {
				t.Errorf("%v, want %v", &back, test.r)
			}
		})
	}
	for _, bad := range []string{`{`, `[]`, `{"survivors":-1}`, `{"survivors":99999999999}`,
		`{"attempts":-1}`, `{"survivors":0,"survivor_list":[{"pid":1}]}`} {
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
	denied := &Result{Args: []string{"/usr/bin/go", "test"}, ExitCode: 1, End: EndExited,
		Duration: 1200 * time.Millisecond}
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

// TestRuleJSON: the rule of a result is in its JSON form and comes back.
func TestRuleJSON(t *testing.T) {
	rule := Rule{File: "/r", Line: 2, Column: 1, Decision: "allow", Sandbox: "outside"}
	text, err := json.Marshal(&Result{Rule: &rule})
	if want := `"rule":{"file":"/r","line":2,"column":1,"decision":"allow","sandbox":"outside"}`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%s, %v", text, err)
	}
	var back Result
	if err := json.Unmarshal(text, &back); err != nil || back.Rule == nil || *back.Rule != rule {
		t.Errorf("%+v, %v", back.Rule, err)
	}
	if text, err := json.Marshal(&Result{}); err != nil || strings.Contains(string(text), `"rule"`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestOutputString(t *testing.T) {
	tests := []struct {
		name string
		in   output.Snapshot
		want string
	}{
		{"empty", output.Snapshot{}, ""},
		{"whole", output.Snapshot{Head: []byte("caf\xc3"), Tail: []byte("\xa9!")}, "café!"},
		{"a gap", output.Snapshot{Head: []byte("ab"), Tail: []byte("yz"), Omitted: 5}, "ab\n... 5 bytes omitted ...\nyz"},
		{"only the beginning", output.Snapshot{Head: []byte("ab"), Omitted: 5}, "ab"},
		{"a gap that cuts characters", output.Snapshot{Head: []byte("a\xe2\x82"), Tail: []byte("\xac\xa9z"), Omitted: 5},
			"a\n... 9 bytes omitted ...\nz"},
		{"no text at all", output.Snapshot{Head: []byte{0xff}, Tail: []byte{0x80, 0x80, 0x80, 0x80, 'z'}, Omitted: 1},
			"\ufffd\n... 4 bytes omitted ...\n\ufffdz"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := newOutput(test.in).String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestDecoded reads output that is not UTF-8; the rows are those of the exec tool.
func TestDecoded(t *testing.T) {
	whole := func(text string) output.Snapshot {
		return output.Snapshot{Head: []byte(text), Total: uint64(len(text))}
	}
	cut := func(head, tail string) output.Snapshot {
		return output.Snapshot{Head: []byte(head), Tail: []byte(tail), Omitted: 7,
			Total: uint64(len(head)+len(tail)) + 7}
	}
	for _, tt := range []struct {
		name   string
		output output.Snapshot
		want   string
	}{
		{"nothing", output.Snapshot{}, ""},
		{"row 21: windows-1251", whole("\xef\xf0\xe8\xec\xe5\xf0"), "пример"},
		{"row 22: IBM866", whole("\xaf\xe0\xa8\xac\xa5\xe0"), "пример"},
		{"row 23: punctuation of windows-1252", whole("\x93\x94 test \x96 dash"), "“” test – dash"},
		{"row 23: not capitals of IBM866", whole("\x92\x91 was it"), "’‘ was it"},
		{"row 24: Latin", whole("caf\xe9"), "café"},
		{"row 25: no encoding fits", whole("\xff\xfe\xfd"), "\ufffd\ufffd\ufffd"},
		{"row 26: stray byte", whole("a\xffb"), "aÿb"},
		{"row 27: valid UTF-8", whole("пример caf\u00e9"), "пример café"},
		{"row 28: capitals of IBM866", whole("\x8f\x90\x88"), "ПРИ"},
		{"damaged UTF-8", whole("日本\xe8"), "日本\ufffd"},
		{"gap in windows-1251", cut("\xef\xf0\xe8\xec\xe5\xf0 ", " \xef\xf0\xe8\xec\xe5\xf0"), "пример " + output.Marker(7) + " пример"},
		{"gap in a character of UTF-8", cut("text \xe4\xb8", "\x96 text"), "text " + output.Marker(10) + " text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := newOutput(tt.output).Decoded(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestOutputPlain(t *testing.T) {
	for _, test := range []struct{ name, printed, want string }{
		{"nothing", "", ""},
		{"no sequences", "one\ntwo\n", "one\ntwo\n"},
		{"colors and modes", "\x1b[?2004h\x1b[1;32mready\x1b[0m\r\n", "ready\n"},
		{"a title and a link", "\x1b]0;title\a\x1b]8;;https://x\x1b\\here\x1b]8;;\x1b\\", "here"},
		{"bytes that are not UTF-8", "\x1b[31m\xff\x1b[m", "\ufffd"},
		{"a line that is written anew", "10%\r20%\r\n", "10%\n20%\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := newOutput(output.Snapshot{Head: []byte(test.printed), Total: uint64(len(test.printed))})
			if got := o.Plain(); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestResultOf holds the rows A1 to A4: one form for all that can come of a run.
func TestResultOf(t *testing.T) {
	ok := &Result{End: EndExited, Output: outputFrom("ok", nil, 2, 0)}
	late := &Result{End: EndTimedOut, TimedOut: true, ExitCode: ExitTimedOut,
		Output: outputFrom("timed out payload", nil, 17, 0)}
	rule := Rule{File: "/r", Line: 1, Column: 1, Decision: event.DecisionPrompt}
	answers := []event.ApprovalDecided{{ID: "1", Decision: approval.Denied}}
	for _, test := range []struct {
		name string
		res  *Result
		err  error
		is   *Result // the Result that is borrowed; nil for one that is made
		code int
		end  End
		text string
	}{
		{"A1 it ran", ok, nil, ok, 0, EndExited, "ok"},
		{"it ran, and its end is not known", ok, errors.New("lost"), ok, 0, EndExited, "ok"},
		{"A2 a time-out", nil, fmt.Errorf("tool: %w", late.Err()), late, 124, EndTimedOut, "timed out payload"},
		{"an exit code", nil, &ExitError{Result: ok}, ok, 0, EndExited, "ok"},
		{"A3 an error of a function", nil, errors.New("boom"), nil, -1, EndFailed, "boom"},
		{"A4 a missing variable", nil, &VariableError{Name: "FOO", By: "reviewer.api_key_env"}, nil, -1, EndFailed, "Missing environment variable: `FOO`, named by reviewer.api_key_env; set it"},
		{"forbidden", nil, &RuleError{rule, ErrForbidden}, nil, -1, EndForbidden, "sallyport: forbidden (rule /r:1:1)"},
		{"refused", nil, &ApprovalError{answers, &RuleError{rule, ErrRefused}}, nil, -1, EndRefused, "sallyport: refused (rule /r:1:1)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := ResultOf(test.res, test.err)
			if test.is != nil && r != test.is || r.ExitCode != test.code || r.End != test.end ||
				r.Output.String() != test.text {
				t.Errorf("%+v, output %q", r, r.Output)
			}
			if test.is != nil {
				return
			}
			if len(r.Stdout.Bytes()) > 0 || r.Stderr.String() != test.text || r.Duration != 0 ||
				r.Error != test.text {
				t.Errorf("%+v", r)
			}
			if (r.Rule != nil) != (test.end != EndFailed) ||
				(len(r.Approvals) > 0) != (test.end == EndRefused) {
				t.Errorf("rule %+v, approvals %+v", r.Rule, r.Approvals)
			}
		})
	}
	if ResultOf(nil, nil) != nil {
		t.Error("a result of nothing")
	}
}

// TestMessagesPrint gives the words of an attacker to all errors.
func TestMessagesPrint(t *testing.T) {
	for _, word := range testenv.Hostile() {
		res, cause := &Result{Args: []string{"/w/" + word}, ExitCode: 1}, errors.New(word)
		for _, err := range []error{
			&CmdError{Reason: word}, &CmdError{Field: "Dir", Reason: word},
			&ExitError{Result: res}, &ExitError{Result: &Result{Args: res.Args, Signal: 9}},
			&TimeoutError{Result: res},
			&WriterError{Missed: 1, Err: cause},
			&TooManySessionsError{Max: 1, Candidates: []SessionInfo{{ID: "1", Args: []string{word, word}}}},
		} {
			testenv.Printed(t, err.Error(), 1)
		}
		testenv.Printed(t, res.String(), 1)
	}
}

func TestEndOfLimit(t *testing.T) {
	for limit, want := range map[string]End{
		executor.LimitMemory: EndOOM, executor.LimitPIDs: EndPIDs, executor.LimitDisk: EndDisk,
		executor.LimitOutput: EndOutput, "x": EndFailed,
	} {
		if got := endOfLimit(limit); got != want {
			t.Errorf("%s: %s", limit, got)
		}
	}
}

// TestLost: a command whose machine was lost has an end of its own, and may have run.
func TestLost(t *testing.T) {
	r, _ := fakeRunner(nil, func(_ *executor.Spec, p *e2e.FakeProcess) {
		p.Exit, p.Err = executor.Exit{Code: -1}, fmt.Errorf("w: %w", &executor.LostError{Machine: "n1"})
	})
	defer r.Close()
	res, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/"})
	var lost *LostError
	if !errors.Is(err, ErrEndUnknown) || !errors.As(err, &lost) || lost.Machine != "n1" || res == nil ||
		res.End != EndLost || res.ExitCode != -1 {
		t.Errorf("got %+v and %v, want both", res, err)
	}
	if made := ResultOf(nil, err); made.End != EndLost || made.Error != err.Error() {
		t.Errorf("%+v", made)
	}
}
