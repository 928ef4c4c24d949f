// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"
	"testing"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraceContextValid(t *testing.T) {
	for _, test := range []struct {
		name     string
		in, want TraceContext
	}{
		{"none", TraceContext{}, TraceContext{}},
		{"both", TraceContext{parent, "a=1,b=2"}, TraceContext{parent, "a=1,b=2"}},
		{"a state alone", TraceContext{"", "a=1"}, TraceContext{}},
		{"a later version", TraceContext{"cc" + parent[2:] + "-more", ""}, TraceContext{parent, ""}},
		{"more in version 0", TraceContext{parent + "-more", ""}, TraceContext{}},
		{"version ff", TraceContext{"ff" + parent[2:], ""}, TraceContext{}},
		{"capitals", TraceContext{strings.ToUpper(parent), ""}, TraceContext{}},
		{"too short", TraceContext{parent[1:], ""}, TraceContext{}},
		{"no trace", TraceContext{"00-" + strings.Repeat("0", 32) + parent[35:], ""}, TraceContext{}},
		{"no span", TraceContext{parent[:36] + strings.Repeat("0", 16) + "-01", ""}, TraceContext{}},
		{"no digits", TraceContext{"00-0af7651916cd43dd8448eb211c80319g" + parent[35:], ""}, TraceContext{}},
		{"other separators", TraceContext{strings.ReplaceAll(parent, "-", "_"), ""}, TraceContext{}},
		{"a line in the state", TraceContext{parent, "a=1\nLD_PRELOAD=x"}, TraceContext{parent, ""}},
		{"a NUL in the state", TraceContext{parent, "a\x00"}, TraceContext{parent, ""}},
		{"a long state", TraceContext{parent, strings.Repeat("a", 513)}, TraceContext{parent, ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.in.Valid(); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}

func FuzzTraceContext(f *testing.F) {
	f.Add(parent, "a=1")
	f.Add("cc"+parent[2:]+"-x", "")
	f.Fuzz(func(t *testing.T, parent, state string) {
		got := TraceContext{parent, state}.Valid()
		if got.Valid() != got {
			t.Errorf("%+v is not valid itself", got)
		}
		if strings.ContainsAny(got.Parent+got.State, "\x00\n\r") || len(got.Parent) > 55 {
			t.Errorf("%+q", got)
		}
	})
}
