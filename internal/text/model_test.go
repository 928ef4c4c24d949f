// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"testing"
	"time"
)

func TestModelText(t *testing.T) {
	for _, tt := range []struct {
		name   string
		report ModelReport
		want   string
	}{
		{"success", ModelReport{Wall: 1250 * time.Millisecond, Output: "hi\n", Budget: DefaultBudget()},
			"Exit code: 0\nWall time: 1.3 seconds\nOutput:\nhi\n"},
		{"whole seconds have no decimal", ModelReport{ExitCode: 2, Wall: 2 * time.Second, Output: "x", Budget: DefaultBudget()},
			"Exit code: 2\nWall time: 2 seconds\nOutput:\nx"},
		{"no time at all", ModelReport{Wall: 40 * time.Millisecond, Budget: DefaultBudget()},
			"Exit code: 0\nWall time: 0 seconds\nOutput:\n"},
		{"time-out", ModelReport{ExitCode: 124, Wall: 10021 * time.Millisecond, TimedOut: true, Output: "part", Budget: DefaultBudget()},
			"Exit code: 124\nWall time: 10 seconds\nOutput:\ncommand timed out after 10021 milliseconds\npart"},
		{"truncated lines are counted", ModelReport{Output: "1\n2\n3\n4\n5\n6\n", Budget: Bytes(4)},
			"Exit code: 0\nWall time: 0 seconds\nTotal output lines: 6\nOutput:\n1\n…8 chars truncated…6\n"},
		{"truncation within a line is not", ModelReport{Output: "1234567890", Budget: Bytes(4)},
			"Exit code: 0\nWall time: 0 seconds\nOutput:\n12…6 chars truncated…90"},
		{"nothing printed, no budget", ModelReport{}, "Exit code: 0\nWall time: 0 seconds\nOutput:\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ModelText(tt.report); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestFormattedOutput(t *testing.T) {
	r := ModelReport{Wall: time.Second, TimedOut: true, Output: "abc", Budget: Bytes(10)}
	want := "Warning: truncated output (original token count: 12)\nTotal output lines: 2\n\ncomma…35 chars truncated…s\nabc"
	if got := FormattedOutput(r); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestAborted(t *testing.T) {
	for _, tt := range []struct {
		name       string
		wall       time.Duration
		text, tool string
	}{
		{"at once", 0, "Wall time: 0.1 seconds\naborted by user", "aborted by user after 0.1s"},
		{"later", 12340 * time.Millisecond, "Wall time: 12.3 seconds\naborted by user", "aborted by user after 12.3s"},
		{"whole seconds", 2 * time.Second, "Wall time: 2.0 seconds\naborted by user", "aborted by user after 2.0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := AbortedText(tt.wall); got != tt.text {
				t.Errorf("AbortedText = %q, want %q", got, tt.text)
			}
			if got := AbortedToolText(tt.wall); got != tt.tool {
				t.Errorf("AbortedToolText = %q, want %q", got, tt.tool)
			}
		})
	}
}

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

func TestSuspectDeniedSeed(t *testing.T) {
	for _, tt := range []struct {
		exit      int
		sandboxed bool
		want      bool
	}{
		{1, true, true}, {2, true, true}, {127, true, false}, {0, true, false}, {1, false, false}, {-1, true, true},
	} {
		if got := SuspectDeniedSeed(tt.exit, tt.sandboxed); got != tt.want {
			t.Errorf("SuspectDeniedSeed(%d, %v) = %v, want %v", tt.exit, tt.sandboxed, got, tt.want)
		}
	}
}
