// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestSuspectDenied(t *testing.T) {
	const network = "CODEX_NETWORK_POLICY_DECISION {\"decision\":\"deny\"} blocked by sandbox policy"
	for _, tt := range []struct {
		name             string
		exit             int
		sandboxed, linux bool
		texts            []string
		want             bool
	}{
		{"row 1: exit 1 without a word", 1, true, true, []string{"", ""}, false},
		{"row 2: not permitted", 1, true, true, []string{"", "touch: x: Operation not permitted"}, true},
		{"row 3: command not found", 127, true, true, []string{"", "bash: foo: command not found"}, false},
		{"row 4: no sandbox", 1, false, true, []string{"", "Operation not permitted"}, false},
		{"row 5: read-only in the aggregate", 101, true, true, []string{"", "", "cargo failed: Read-only file system when writing target"}, true},
		{"row 6: network words, exit 0", 0, true, true, []string{network}, false},
		{"row 6: without a sandbox", 0, false, true, []string{network}, false},
		{"row 7: killed by the filter", 159, true, true, nil, true},
		{"exit 159 elsewhere", 159, true, false, nil, false},
		{"words come before the exit code", 126, true, true, []string{"sh: ./x: Permission denied"}, true},
		{"exit 2 without a word", 2, true, true, []string{"usage"}, false},
		{"exit 126 without a word", 126, true, true, []string{"not executable"}, false},
		{"unknown exit code", -1, true, true, []string{"blocked by LANDLOCK"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var texts [][]byte
			for _, s := range tt.texts {
				texts = append(texts, []byte(s))
			}
			if got := SuspectDenied(tt.exit, tt.sandboxed, tt.linux, texts...); got != tt.want {
				t.Errorf("SuspectDenied = %v, want %v", got, tt.want)
			}
		})
	}
}
