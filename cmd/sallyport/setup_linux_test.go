// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestSetup: the answer on the terminal decides, once for all files, and what was changed while the question
// was open is not lost.
func TestSetup(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	for name, test := range map[string]struct {
		keys  string
		edit  string // what another program writes meanwhile
		code  int
		mcp   bool // the file is written
		hooks bool
	}{
		"yes":         {keys: "y\r", mcp: true, hooks: true},
		"no":          {keys: "no\r", code: 123},
		"end of file": {keys: "\x04", code: 123},
		"changed":     {keys: "y\r", edit: "{}\n", code: 1, mcp: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeat(t)
			x := testenv.StartTerminal(t, s.command(t, "sh", "-c",
				"yes | sallyport setup cursor | cat >/dev/null"), 100, 50)
			x.Expect(setupChoices)
			if test.edit != "" {
				dir := filepath.Join(s.home, ".cursor")
				if err := errors.Join(os.Mkdir(dir, 0o755),
					os.WriteFile(filepath.Join(dir, "mcp.json"), []byte(test.edit), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			x.Send(test.keys)
			x.Wait()
			for file, want := range map[string]bool{"mcp.json": test.mcp, "hooks.json": test.hooks} {
				text, err := os.ReadFile(filepath.Join(s.home, ".cursor", file))
				if (err == nil) != want || test.edit != "" && err == nil && string(text) != test.edit {
					t.Errorf("%s: %v %s; seen:\n%s", file, err, text, x.Transcript())
				}
			}
		})
	}
	s := newSeat(t)
	x := testenv.StartTerminal(t, s.command(t, "sallyport", "setup", "cursor"), 100, 80)
	x.Expect(setupChoices)
	x.Send("n\r")
	if got := x.Wait(); got != 123 || x.Modes() != x.ModesBefore() {
		t.Errorf("exit code %d; seen:\n%s", got, x.Transcript())
	}
}

const setupChoices = `\[y\] change  \[n\] change nothing  > $`
