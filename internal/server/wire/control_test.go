// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"reflect"
	"testing"
)

// controlDecoders are the decoders of requests that control a process, by method.
var controlDecoders = map[string]func(json.RawMessage) (any, error){
	"signal": func(p json.RawMessage) (any, error) {
		return DecodeSignal(p, func(name string) bool { return name == "SIGTERM" })
	},
	"terminate":  func(p json.RawMessage) (any, error) { return Decode[Terminate](p) },
	"resize":     func(p json.RawMessage) (any, error) { return Decode[Resize](p) },
	"closeStdin": func(p json.RawMessage) (any, error) { return Decode[CloseStdin](p) },
}

// TestControlErrors: what is not as documented is refused with the reason.
func TestControlErrors(t *testing.T) {
	for _, test := range []struct{ method, params, want string }{
		{"signal", `{"processId":"p","signal":""}`, "unknown variant ``, expected `interrupt` or a signal of this system, such as `SIGTERM`"},
		{"signal", `{"processId":"p","signal":15}`, "invalid type: number, expected a string"},
		{"signal", `{"processId":"p","signal":"interrupt"}`, ""}, {"signal", `{"processId":"p","signal":"SIGTERM"}`, ""},
		{"terminate", `{"processId":"p"}`, ""}, {"terminate", `{"processId":"p","graceMs":null}`, ""},
		{"terminate", `{"processId":"p","graceMs":-1}`, "invalid number"},
		{"terminate", `{"processId":"p","graceMs":"1s"}`, `invalid type: string "1s", expected u64`},
		{"terminate", `{"graceMs":1}`, "missing field `processId`"},
		{"resize", `{"processId":"p","cols":1,"rows":65535}`, ""},
		{"resize", `{"processId":"p","cols":80}`, "missing field `rows`"},
		{"resize", `{"processId":"p","cols":80,"rows":null}`, "invalid type: null, expected u16"},
		{"resize", `{"processId":"p","cols":0,"rows":24}`, "cols must be between 1 and 65535"},
		{"resize", `{"processId":"p","cols":80,"rows":65536}`, "rows must be between 1 and 65535"},
		{"resize", `{"processId":"p","cols":80,"rows":1.5}`, "invalid number"},
		{"resize", `{"cols":80,"rows":24}`, "missing field `processId`"},
		{"closeStdin", `{"processId":"p"}`, ""}, {"closeStdin", `{"processId":"p","writeId":null}`, ""},
		{"closeStdin", `{"processId":"p","writeId":""}`, "writeId must not be empty"},
		{"closeStdin", `{}`, "missing field `processId`"},
	} {
		t.Run(test.method+" "+test.params, func(t *testing.T) {
			got := ""
			if _, err := controlDecoders[test.method](json.RawMessage(test.params)); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestRoundTrip: what a client encodes is what a server decodes.
func TestRoundTrip(t *testing.T) {
	all := uint64(7)
	for _, test := range []struct {
		name   string
		params any
		decode func(json.RawMessage) (any, error)
	}{
		{"start", &Start{
			ProcessID: "p", Argv: []string{"a", ""}, CWD: "file:///w", Env: map[string]string{"A": "1"},
			TTY: true, PipeStdin: true, Arg0: "b",
			EnvPolicy: &EnvPolicy{Inherit: "all", IgnoreDefaultExcludes: true, Exclude: []string{"x"},
				Set: map[string]string{"B": "2"}, IncludeOnly: []string{"*"}},
			Sandbox: &Sandbox{
				Permissions: json.RawMessage(`{"type":"disabled"}`), CWD: "file:///w",
				WorkspaceRoots: []string{"file:///w"}, TempDirs: []string{"file:///t"},
				HomeDir: "file:///h", WindowsLevel: "disabled",
			},
		}, func(v json.RawMessage) (any, error) { return Decode[Start](v) }},
		{"smallest start", &Start{Argv: []string{"a"}, Env: map[string]string{}}, func(v json.RawMessage) (any, error) { return Decode[Start](v) }},
		{"read", &Read{ProcessID: "p", AfterSeq: 1, MaxBytes: &all, WaitMs: 2}, func(v json.RawMessage) (any, error) { return Decode[Read](v) }},
		{"write", &Write{ProcessID: "p", Chunk: []byte("\x00a"), WriteID: "1"}, func(v json.RawMessage) (any, error) { return Decode[Write](v) }},
		{"signal", &Signal{ProcessID: "p", Signal: "SIGTERM"}, func(v json.RawMessage) (any, error) {
			return DecodeSignal(v, func(string) bool { return true })
		}},
		{"terminate", &Terminate{ProcessID: "p", GraceMs: 5}, func(v json.RawMessage) (any, error) { return Decode[Terminate](v) }},
		{"resize", &Resize{ProcessID: "p", Cols: 1, Rows: 2}, func(v json.RawMessage) (any, error) { return Decode[Resize](v) }},
		{"close", &CloseStdin{ProcessID: "p", WriteID: "2"}, func(v json.RawMessage) (any, error) { return Decode[CloseStdin](v) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := json.Marshal(test.params)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := test.decode(text); err != nil || !reflect.DeepEqual(got, test.params) {
				t.Errorf("%s: %+v, %v, want %+v", text, got, err, test.params)
			}
		})
	}
}
