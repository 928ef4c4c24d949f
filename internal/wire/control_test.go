// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"testing"
)

// controlDecoders are the decoders of requests that control a process, by method.
var controlDecoders = map[string]func(json.RawMessage) (any, error){
	"signal": func(p json.RawMessage) (any, error) {
		return DecodeSignal(p, func(name string) bool { return name == "SIGTERM" })
	},
	"terminate":  func(p json.RawMessage) (any, error) { return DecodeTerminate(p) },
	"resize":     func(p json.RawMessage) (any, error) { return DecodeResize(p) },
	"closeStdin": func(p json.RawMessage) (any, error) { return DecodeCloseStdin(p) },
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
