// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gitstate

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestParseConfigAsGit has git read the same texts.
func TestParseConfigAsGit(t *testing.T) {
	program, file := testenv.NeedProgram(t, "git"), t.TempDir()+"/config"
	for _, test := range configTests {
		if test.own {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), program, "config", "--file", file, "--null", "--list")
			cmd.Env = append(testenv.Environ(), "HOME="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
			out, err := cmd.CombinedOutput()
			if (err == nil) != (test.line == 0) {
				t.Fatalf("git: %q, %v", out, err)
			}
			if err != nil {
				return
			}
			var got []string
			for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
				if entry != "" {
					got = append(got, strings.Replace(entry, "\n", "=", 1))
				}
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("git reads something else:\n%s", diff)
			}
		})
	}
}
