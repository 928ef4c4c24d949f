// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestStagedProgram: which program a command names is decided by what it finds, not by what the host has.
func TestStagedProgram(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const write = `tool() { mkdir -p "${1%/*}"; printf '#!/bin/sh\necho '"$2"'\n' >"$1"; chmod +x "$1"; }; `
	for _, test := range []struct{ name, line, program, path, want, fails string }{
		{"only staged", "tool ./new new", "./new", "", "new", ""},
		{"absolute", "tool ./new new", "WS/new", "", "new", ""},
		{"a name with a slash alone", "tool ./made/bin/new new", "made/bin/new", "", "new", ""},
		{"in PATH", "tool ./bin/new new", "new", "WS/bin:/usr/bin:/bin", "new", ""},
		{"in front of the host's", "tool ./bin/true new", "true", "WS/bin:/usr/bin:/bin", "new", ""},
		{"a link to the host", "mkdir bin; ln -s /bin/echo bin/say", "say", "WS/bin", "", ""},
		{"a chain of links", "tool ./dir/x new; ln -s dir d; ln -s d/x here", "./here", "", "new", ""},
		{"a parent directory", "tool ./a/b/x new; ln -s a/b c", "c/../b/x", "", "new", ""},
		{"a replaced directory", "rm -r dir; tool ./dir/x new", "dir/x", "", "new", ""},
		{"in a directory that was replaced", "rm -r dir; tool ./dir/x new", "dir/file", "", "", "not found"},
		{"removed", "rm file", "./file", "", "", "not found"},
		{"no longer a program", "tool ./new new; chmod -x new", "./new", "", "", "permission denied"},
		{"a directory", "mkdir d", "./d", "", "", "is a directory"},
		{"a circle of links", "ln -s a b; ln -s b a", "./a", "", "", "too many levels"},
		{"the host's", "true", "echo", "", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			unchanged(t, a.ws, a.out)
			a.staged(t, &job{}, write+test.line)
			name := strings.Replace(test.program, "WS", a.ws, 1)
			j := &job{args: []string{name}, stage: &executor.Staging{Name: "test"}}
			if test.path != "" {
				j.env = []string{"PATH=" + strings.Replace(test.path, "WS", a.ws, 1)}
			}
			res, err := a.run(t, j)
			failed := new(executor.StartError)
			switch {
			case test.fails == "":
				must(t, err)
				if trimmed(res.out) != test.want {
					t.Errorf("%s printed %q, %q, want %q", filepath.Base(name), res.out, res.err, test.want)
				}
			case !errors.As(err, &failed) || !strings.Contains(failed.Error(), test.fails):
				t.Errorf("%v, want one about %q", err, test.fails)
			}
		})
	}
}
