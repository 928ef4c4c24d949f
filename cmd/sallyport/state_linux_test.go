// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestStateBelow: nothing below the state directory, such as the key of the audit log, is opened to a command
// by a flag, by a link or as its directory.
func TestStateBelow(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	s := newSeat(t)
	if out, code := s.answer(t, "run", "--", "true"); code != 0 {
		t.Fatal(out)
	}
	audit := filepath.Join(s.home, "sallyport", "audit")
	key := filepath.Join(audit, "key")
	before := testenv.ReadFile(t, key)
	link := filepath.Join(s.home, "link")
	if err := os.Symlink(audit, link); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"directory for reading": {"--ro", audit},
		"directory for writing": {"--rw", audit},
		"file for reading":      {"--ro", key},
		"file for writing":      {"--rw", key},
		"behind a link":         {"--rw", link},
		"working directory":     {"-C", audit},
	} {
		t.Run(name, func(t *testing.T) {
			script := []string{"--", "sh", "-c", `cat "$0"; echo x >>"$0"`, key}
			out, code := s.answer(t, slices.Concat([]string{"run"}, flags, script)...)
			if code != 125 || !strings.Contains(out, "own state") {
				t.Errorf("exit code %d, %s", code, out)
			}
			if now := testenv.ReadFile(t, key); string(now) != string(before) {
				t.Errorf("the key is %q now", now)
			}
		})
	}
	out, code := s.answer(t, "run", "--deny", audit, "--", "true")
	if code != 0 {
		t.Errorf("a rule that denies: exit code %d, %s", code, out)
	}
}
