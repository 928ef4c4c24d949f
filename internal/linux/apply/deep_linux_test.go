// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// deep makes directories one in the other, and files in the last one.
func deep(t *testing.T, top string, levels, files int) {
	t.Helper()
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	name := strings.Repeat("n", 100)
	for range levels {
		if err == nil {
			err = unix.Mkdirat(at, name, 0o755)
		}
		next := -1
		if err == nil {
			next, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		unix.Close(at)
		if at = next; err != nil {
			t.Fatal(err)
		}
	}
	for i := range files {
		if err := unix.Mknodat(at, fmt.Sprint("f", i), unix.S_IFREG|0o644, 0); err != nil {
			t.Fatal(err)
		}
	}
	unix.Close(at)
}

// TestDeep: each path is judged once, and none that no program could use; such a tree stays in the stage.
func TestDeep(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, test := range []struct {
		name            string
		levels, files   int
		applied, judged int
	}{
		{"many files", 20, 50, 50, 70},
		{"deeper than paths can be", 300, 1, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newTrial(t, mkdir(t, t.TempDir(), "x"))
			deep(t, filepath.Join(x.dir, "upper"), test.levels, test.files)
			judged := 0
			x.open().Closed = func(string) error { judged++; return nil }
			a := x.apply(executor.ApplyOptions{})
			if len(a.Applied) != test.applied || len(a.Refused) != test.files-test.applied || judged != test.judged {
				t.Errorf("%d applied, %d refused, %d paths judged", len(a.Applied), len(a.Refused), judged)
			}
			if names, err := os.ReadDir(x.root); err != nil || len(names) != min(1, test.applied) {
				t.Errorf("the host has %v, %v", names, err)
			}
		})
	}
}
