// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"strings"
	"testing"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		name, text string
		code       int
		ok         bool
	}{
		{"ended", "{ \"exit-code\": 3 }", 3, true},
		{"zero", "{\"exit-code\": 0}", 0, true},
		{"never begun", "{\"child-pid\": 7}", 0, false},
		{"nothing", "", 0, false},
		{"no JSON", "exit-code 3\n{", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if code, ok := exitCode([]byte(c.text)); code != c.code || ok != c.ok {
				t.Errorf("%d %v", code, ok)
			}
		})
	}
}

// FuzzOutput checks that reading any output of bubblewrap ends, and that the result is in it.
func FuzzOutput(f *testing.F) {
	for _, s := range []string{"bubblewrap 0.8.0\n", "{\"exit-code\": 3}\n", "", "a b.c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = version(s)
		if code, ok := exitCode([]byte(s)); ok && !strings.Contains(s, "exit-code") &&
			!strings.Contains(strings.ToLower(s), "exit") && !strings.Contains(s, "\\") {
			t.Errorf("code %d", code)
		}
	})
}
