// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// runDecoders are the decoders of requests about runs, and of the answer to run/approve.
var runDecoders = map[string]func(json.RawMessage) (any, error){
	"start":  func(p json.RawMessage) (any, error) { return Decode[RunStart](p) },
	"id":     func(p json.RawMessage) (any, error) { return DecodeRunID(p) },
	"read":   func(p json.RawMessage) (any, error) { return Decode[RunRead](p) },
	"result": func(p json.RawMessage) (any, error) { return Decode[RunResultOf](p) },
	"write":  func(p json.RawMessage) (any, error) { return Decode[RunWrite](p) },
	"wait":   func(p json.RawMessage) (any, error) { return Decode[RunWait](p) },
	"size":   func(p json.RawMessage) (any, error) { return Decode[RunResize](p) },
	"signal": func(p json.RawMessage) (any, error) {
		return DecodeRunSignal(p, func(name string) bool { return name == "SIGTERM" })
	},
	"approval": func(p json.RawMessage) (any, error) { return Decode[RunApproval](p) },
}

// TestRunErrors: what is not as documented is refused with the reason.
func TestRunErrors(t *testing.T) {
	for _, test := range []struct{ method, params, want string }{
		{"start", `{}`, "missing field `args`"},
		{"start", `{"args":[]}`, "args must not be empty"},
		{"start", `{"args":"x"}`, `invalid type: string "x", expected a sequence`},
		{"start", `{"args":[1]}`, "invalid type: number, expected a string"},
		{"start", `{"args":["x"],"cwd":1}`, "invalid type: number, expected a string"},
		{"start", `{"args":["x"],"env":["A=1"]}`, "invalid type: sequence, expected a map"},
		{"start", `{"args":["x"],"tty":true}`, "invalid type: boolean `true`, expected struct RunSize"},
		{"start", `{"args":["x"],"tty":{"cols":80}}`, "missing field `rows`"},
		{"start", `{"args":["x"],"tty":{"cols":80,"rows":0}}`, "rows must be between 1 and 65535"},
		{"start", `{"args":["x"],"events":1}`, "invalid type: number, expected a boolean"},
		{"start", `{"args":["x"],"cwd":null,"env":null,"tty":null,"screen":null,"events":null,"openStdin":null}`, ""},
		{"id", `{}`, "missing field `runId`"}, {"id", `{"runId":5}`, "invalid type: number, expected a string"}, {"id", `[]`, "invalid type: sequence, expected struct RunParams"},
		{"read", `{"runId":"1"}`, "missing field `after`"}, {"read", `{"runId":"1","after":-1}`, "invalid number"}, {"read", `{"runId":"1","after":null}`, "invalid type: null, expected u64"},
		{"read", `{"runId":"1","after":0,"maxBytes":1.5}`, "invalid number"},
		{"read", `{"runId":"1","after":0,"reader":true}`, "invalid type: boolean `true`, expected struct RunReader"},
		{"read", `{"runId":"1","after":0,"reader":{"leaves":1}}`, "invalid type: number, expected a boolean"}, {"read", `{"runId":"1","after":0,"reader":null}`, ""},
		{"result", `{}`, "missing field `runId`"}, {"result", `{"runId":"1","output":1}`, "invalid type: number, expected a boolean"}, {"result", `{"runId":"1","from":-1}`, "invalid number"},
		{"write", `{"runId":"1","chunk":"x"}`, "Invalid padding"}, {"write", `{"runId":"1","chunk":"","writeId":""}`, "writeId must not be empty"},
		{"wait", `{"runId":"1"}`, "missing field `for`"}, {"wait", `{"runId":"1","for":null}`, "invalid type: null, expected struct RunConditions"},
		{"wait", `{"runId":"1","for":{"quiet":1}}`, "unknown field `quiet`, expected one of `exit`, `quietMs`, `input`, `match`, `port`, `firstOutput`, `bytes`, `raw`, `after`"},
		{"wait", `{"runId":"1","for":{"match":1}}`, "invalid type: number, expected a string"},
		{"wait", `{"runId":"1","for":{"exit":"yes"}}`, `invalid type: string "yes", expected a boolean`},
		{"wait", `{"runId":"1","for":{},"timeoutMs":-5}`, "invalid number"},
		{"size", `{"runId":"1","cols":1}`, "missing field `rows`"},
		{"signal", `{"runId":"1","signal":"interrupt"}`, "unknown variant `interrupt`, expected a signal of this system, such as `SIGTERM`"},
		{"signal", `{"runId":"1","signal":"SIGTERM"}`, ""},
		{"approval", `{"message":"x"}`, "missing field `decision`"}, {"approval", `"approved"`, `invalid type: string "approved", expected struct RunApproval`},
		{"approval", `{"decision":"approved","message":1}`, "invalid type: number, expected a string"}, {"approval", `{"decision":"approved"}`, ""},
	} {
		t.Run(test.method+" "+test.params, func(t *testing.T) {
			got := ""
			if _, err := runDecoders[test.method](json.RawMessage(test.params)); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestRunValues: the members of requests have their places.
func TestRunValues(t *testing.T) {
	three, thousand := uint64(3), uint64(1000)
	for method, test := range map[string]struct {
		params string
		want   any
	}{
		"start": {
			`{"args":["-s","read-only","--","sh"],"cwd":"/w","env":{"A":"1"},"tty":{"cols":80,"rows":24},"openStdin":true,"screen":true,"events":true,"reader":true}`,
			&RunStart{Args: []string{"-s", "read-only", "--", "sh"}, Dir: "/w",
				Env: map[string]string{"A": "1"}, TTY: &RunSize{80, 24}, OpenStdin: true, Screen: true,
				Events: true, Reader: true},
		},
		"read":   {`{"runId":"7","after":5,"maxBytes":3,"waitMs":9,"reader":{"stdoutClosed":true,"stderrClosed":true,"leaves":true}}`, &RunRead{RunID: "7", After: 5, MaxBytes: &three, WaitMs: 9, Reader: &RunReader{true, true, true}}},
		"result": {`{"runId":"7","output":false,"from":3}`, &RunResultOf{RunID: "7", From: &three}},
		"write":  {`{"runId":"7","chunk":"aGk=","writeId":"w"}`, &RunWrite{RunID: "7", Chunk: []byte("hi"), WriteID: "w"}},
		"wait": {
			`{"runId":"7","for":{"exit":true,"quietMs":2,"input":true,"match":"x$","port":true,"firstOutput":true,"bytes":4},"timeoutMs":1000}`,
			&RunWait{RunID: "7", TimeoutMs: &thousand, RunConditions: RunConditions{Exit: true, QuietMs: 2,
				Input: true, Match: "x$", Port: true, FirstOutput: true, Bytes: 4}},
		},
		"size":     {`{"runId":"7","cols":1,"rows":2}`, &RunResize{RunID: "7", RunSize: RunSize{1, 2}}},
		"approval": {`{"decision":"denied","message":"no"}`, &RunApproval{Decision: "denied", Message: "no"}},
	} {
		if got, err := runDecoders[method](json.RawMessage(test.params)); err != nil ||
			!reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v, want %+v", method, got, err, test.want)
		}
	}
}

// FuzzDecodeRun: no parameters make a decoder fail otherwise than with an error, and what it accepts
// has what it needs.
func FuzzDecodeRun(f *testing.F) {
	f.Add([]byte(`{"args":["x"],"cwd":"/","env":{"A":"1"},"tty":{"cols":80,"rows":24},"screen":true}`))
	f.Add([]byte(`{"runId":"1","after":1,"chunk":"aGk=","for":{"match":"x","bytes":1},"timeoutMs":1,"cols":1,"rows":1,"signal":"SIGTERM"}`))
	f.Add([]byte(`{"decision":"approved","message":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) || len(data) == 0 || data[0] == ' ' || data[0] == '\n' || data[0] == '\t' ||
			data[0] == '\r' {
			return // package jsonrpc refuses it, or cuts the space
		}
		if s, err := Decode[RunStart](data); err == nil &&
			(len(s.Args) == 0 || s.TTY != nil && (s.TTY.Cols == 0 || s.TTY.Rows == 0)) {
			t.Errorf("%s", data)
		}
		for _, decode := range runDecoders {
			_, _ = decode(data)
		}
	})
}

// TestRunStage: stage of run/start is a truth value or a name, and nothing else.
func TestRunStage(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       RunStage
		fails      string
	}{
		{"absent", `{"args":["a"]}`, RunStage{}, ""},
		{"null", `{"args":["a"],"stage":null}`, RunStage{}, ""},
		{"false", `{"args":["a"],"stage":false}`, RunStage{}, ""},
		{"true", `{"args":["a"],"stage":true}`, RunStage{Staged: true}, ""},
		{"name", `{"args":["a"],"stage":"é"}`, RunStage{Staged: true, Name: "é"}, ""},
		{"empty", `{"args":["a"],"stage":""}`, RunStage{},
			"stage must not be empty; use true for a new stage"},
		{"number", `{"args":["a"],"stage":1}`, RunStage{}, "stage: invalid type: number"},
		{"list", `{"args":["a"],"stage":["a"]}`, RunStage{}, "stage: invalid type: sequence"},
		{"object", `{"args":["a"],"stage":{}}`, RunStage{}, "stage: invalid type: map"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := Decode[RunStart]([]byte(test.text))
			if (err != nil) != (test.fails != "") || err != nil &&
				!strings.HasPrefix(err.Error(), test.fails) {
				t.Fatalf("%v, want %q", err, test.fails)
			}
			if err != nil {
				return
			}
			if p.Stage != test.want {
				t.Errorf("%+v, want %+v", p.Stage, test.want)
			}
			text, err := json.Marshal(p)
			again, err2 := Decode[RunStart](text)
			if err != nil || err2 != nil || again.Stage != test.want {
				t.Errorf("%s: %v, %v", text, err, err2)
			}
		})
	}
}
