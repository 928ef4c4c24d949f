// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestClassify(t *testing.T) {
	pathError := func(errno syscall.Errno) error { return &fs.PathError{Op: "stat", Path: "/x", Err: errno} }
	tests := []struct {
		name string
		err  error
		code int
		end  string
		says string
	}{
		{"usage", NewError("no %s", "sense"), 125, "failed", "no sense"},
		{"proxy", ErrorWith(121, sallyport.EndUnavailable, "w", "m"), 121, "unavailable", "w; m"},
		{"unsupported", fmt.Errorf("%w: %w", sallyport.ErrNoSandbox, &sandbox.UnsupportedError{Need: "n", Have: "h", Hint: "do"}),
			121, "unavailable", "sandbox not available: needs n, but h; do"},
		{"a weaker level", &sandbox.UnsupportedError{Need: "n", Have: "h", Hint: "do", Level: "landlock"}, 121, "unavailable",
			"sandbox not available: needs n, but h; do; or, with fewer walls (sallyport doctor lists them), add --level landlock"},
		{"no other fix", &sandbox.UnsupportedError{Need: "n", Have: "h", Level: "landlock"}, 121, "unavailable",
			"sandbox not available: needs n, but h; add --level landlock"},
		{"no sandbox", sallyport.ErrNoSandbox, 121, "unavailable", "no sandbox; run sallyport doctor to see what is missing"},
		{"forbidden", fmt.Errorf("%w: rule 3", sallyport.ErrForbidden), 122, "forbidden", "forbidden: rule 3"},
		{"another sandbox", &executor.ApartError{Why: "w"}, 122, "forbidden",
			"the command cannot start in this shared sandbox: w; run it on its own, or open a sandbox with its network"},
		{"refused", fmt.Errorf("%w: no approver", sallyport.ErrRefused), 123, "refused", "refused: no approver"},
		{"a writer", fmt.Errorf("%w: %w", sallyport.ErrRefused, &approval.WriterError{Path: "/w/a b", Role: "script", Run: "r", PID: 7, Program: "p"}), 123, "refused",
			"refused: the script /w/a b could be changed by another command that still runs (p, run r, process 7); " +
				"wait until that has ended or end it, or start it with the file read-only; " +
				"sallyport ps lists sessions and sallyport kill ID ends one; --ro '/w/a b' starts it with the file read-only"},
		{"not found", &executor.StartError{Program: "p", NotFound: true, Err: errors.New("p: not found in PATH")},
			127, "not_found", "p: not found in PATH"},
		{"missing file", &executor.StartError{Program: "./p", NotFound: true, Err: fmt.Errorf("x: %w", pathError(syscall.ENOENT))},
			127, "not_found", "./p: no such file"},
		{"missing interpreter", &executor.StartError{Program: "./p", NotFound: true, Err: syscall.ENOENT},
			127, "not_found", "./p: not found inside the sandbox (the program or its interpreter); check its first line"},
		{"not executable", &executor.StartError{Program: "./p", Err: syscall.EACCES},
			126, "failed", "./p: permission denied; check that it is executable (chmod +x) and that the policy lets it be read"},
		{"directory", &executor.StartError{Program: "./p", Err: pathError(syscall.EISDIR)}, 126, "failed", "./p: is a directory"},
		{"busy", &executor.StartError{Program: "./p", Err: pathError(syscall.ETXTBSY)}, 126, "failed", "./p: cannot be executed: text file busy"},
		{"lost", fmt.Errorf("sallyport: %w", &executor.LostError{Machine: "n\n1"}), 125, "lost",
			`the machine that ran the command was lost ("n\n1"); what became of the command is not known`},
		{"anything", errors.New("sallyport: first line\nsecond   line"), 125, "failed", "first line second line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if e := Classify(tt.err); e.Code != tt.code || string(e.End) != tt.end || e.String() != tt.says {
				t.Errorf("%d %s %q, want %d %s %q", e.Code, e.End, e, tt.code, tt.end, tt.says)
			}
		})
	}
}
