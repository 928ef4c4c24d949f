// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestStorm checks that a tree is killed that starts processes meanwhile, also where it
// cannot be killed as a whole.
func TestStorm(t *testing.T) {
	testenv.RunAsOrdinary(t)
	program := buildC(t, "hop.c")
	for _, level := range survivorLevels {
		t.Run(levelName(level), func(t *testing.T) {
			e := executorAt(t, level)
			for _, how := range []string{"fork", "vm"} {
				t.Run(how, func(t *testing.T) {
					begin := time.Now()
					exit := leave(t, e, level, &leftover{holds: true, script: `exec ` + program + ` ` + how +
						` 4 $M >/dev/null 2>&1 3>"$F"`})
					t.Logf("%d named, ended after %v", len(exit.Survivors), time.Since(begin))
					if exit.Code != 0 {
						t.Errorf("exit code %d", exit.Code)
					}
				})
			}
		})
	}
}

// buildC compiles a static program of testdata, if there is a compiler, and returns its
// path, which every user can reach.
func buildC(t *testing.T, source string) string {
	t.Helper()
	cc := testenv.NeedProgram(t, "cc")
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-c-") //nolint:usetesting // a command has a /tmp of its own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "program")
	cmd := exec.CommandContext(t.Context(), cc, "-O1", "-static", "-o", program,
		filepath.Join("testdata", source))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}
