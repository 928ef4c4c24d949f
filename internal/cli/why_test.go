// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/runlog"
)

func withID(id string) runlog.Record { return runlog.Record{Result: sallyport.Result{Run: id}} }

func TestFindRun(t *testing.T) {
	log := runlog.Log{Records: []runlog.Record{withID("ab1"), withID("ab2"), withID("ab"), withID("cd")}}
	for _, test := range []struct{ id, want, err string }{
		{"", "cd", ""}, {"ab1", "ab1", ""}, {"ab", "ab", ""}, {"c", "cd", ""}, {"a", "", "is ambiguous (3 runs)"}, {"x", "", "unknown run"},
	} {
		t.Run(test.id, func(t *testing.T) {
			got, err := findRun(log, test.id)
			if got.Run != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q, %v", got.Run, err)
			}
		})
	}
}

// TestRecordedFlags: each flag of run is recorded, or known not to decide what a program may
// touch.
func TestRecordedFlags(t *testing.T) {
	ignored := []string{
		"--approval", "--justification", "--prefix-rule", "--approver", "--approval-wait", "--rules", "--config", "--no-config", "--command", "--shell", "--login", "--interactive", "--timeout", "--kill-after", // of the command itself
		"--json", "--jsonl", "--jsonl-drop", "--max-output", "--quiet", "--verbose", "--help",
	}
	for _, f := range runFlags(new(runOptions)) {
		if f.unsupported || slices.Contains(ignored, f.name()) {
			continue
		}
		t.Run(f.long, func(t *testing.T) {
			var o runOptions
			value := "/x"
			switch {
			case len(f.choices()) > 0:
				value = f.choices()[len(f.choices())-1]
			case f.value == "":
				value = ""
			case f.long == "grant":
				value = "git"
			case f.long == "allow":
				value = "unix"
			case f.long == "env":
				value = "NAME=secret"
			case slices.Contains([]string{"memory", "disk", "output"}, f.long):
				value = "67108864"
			case f.long == "cpus":
				value = "2.5"
			case f.long == "fd":
				value = "3,4"
			case f.long == "pids":
				value = "200"
			}
			for _, g := range runFlags(&o) {
				if g.long == f.long {
					if err := g.set(value); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := o.shape
			want := []string{f.name(), value}
			if f.short != 0 {
				want[0] = "-" + string(rune(f.short))
			}
			if f.value == "" {
				want = want[:1]
			}
			if f.long == "env" {
				want[1] = "NAME=***"
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
