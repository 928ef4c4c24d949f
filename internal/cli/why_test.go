// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/audits"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
)

func withID(id string) explain.Record { return explain.Record{Result: sallyport.Result{Run: id}} }

func TestFindRun(t *testing.T) {
	log := explain.Log{Records: []explain.Record{withID("ab1"), withID("ab2"), withID("ab"), withID("cd")}}
	for _, test := range []struct{ id, want, err string }{
		{"", "cd", ""}, {"ab1", "ab1", ""}, {"ab", "ab", ""}, {"c", "cd", ""}, {"a", "", "is ambiguous (3 runs)"}, {"x", "", "unknown run"},
	} {
		t.Run(test.id, func(t *testing.T) {
			got, err := audits.FindRun(log, test.id)
			if got.Run != test.want || (err == nil) != (test.err == "") || err != nil &&
				!strings.Contains(err.Error(), test.err) {
				t.Errorf("%q, %v", got.Run, err)
			}
		})
	}
}

// TestRecordedFlags: each flag of run is recorded, or known not to decide what a program may
// touch.
func TestRecordedFlags(t *testing.T) {
	ignored := []string{
		// of the command itself
		"--approval", "--justification", "--prefix-rule", "--approver", "--approval-wait", "--rules",
		"--ask-in-console", "--no-ask-in-console",
		"--config", "--no-config", "--command", "--shell", "--login", "--interactive", "--detach",
		"--idle", "--remote", "--remote-token-file", "--remote-tls-cert", "--remote-tls-key",
		"--remote-tls-ca", "--creds", "--queue", "--timeout", "--kill-after",
		"--json", "--jsonl", "--jsonl-drop", "--max-output", "--quiet", "--verbose", "--help",
		"--approved", "--record", "--no-record",
	}
	for _, f := range new(args.Options).Flags() {
		if slices.Contains(ignored, f.Name()) {
			continue
		}
		t.Run(f.Long, func(t *testing.T) {
			var o args.Options
			value := "/x"
			switch {
			case len(choices(&f)) > 0:
				value = choices(&f)[len(choices(&f))-1]
			case f.Value == "":
				value = ""
			case f.Value == "PATTERN":
				value = "*.example.com:443"
			case f.Long == "grant":
				value = "git"
			case f.Long == "allow":
				value = "unix"
			case f.Long == "env":
				value = "NAME=secret"
			case slices.Contains([]string{"memory", "disk", "output"}, f.Long):
				value = "67108864"
			case f.Long == "cpus":
				value = "2.5"
			case f.Long == "fd":
				value = "3,4"
			case f.Long == "publish":
				value = "3000:8080"
			case f.Long == "pids":
				value = "200"
			}
			for _, g := range o.Flags() {
				if g.Long == f.Long {
					if err := g.Set(value); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := o.Shape
			want := []string{f.Name(), value}
			if f.Short != 0 {
				want[0] = "-" + string(rune(f.Short))
			}
			if f.Value == "" {
				want = want[:1]
			}
			if f.Long == "env" {
				want[1] = "NAME=***"
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
