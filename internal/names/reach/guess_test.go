// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestGuess covers rows 1 to 7: there is at most one denial, and it is labeled as a guess.
func TestGuess(t *testing.T) {
	ro, full := sandbox.ReadOnly(), sandbox.FullAccess()
	tests := []struct {
		name   string
		exit   int
		policy sandbox.Policy
		stderr string
		want   string // the guess as a person reads it; empty is none
	}{
		{"row1 no text", 1, ro, "", ""},
		{"row2 not permitted", 1, ro, "chown: changing ownership of '/x': Operation not permitted", "probably write /x (EPERM, guessed)"},
		{"row3 not found", 127, ro, "sh: foo: command not found", ""},
		{"row4 no sandbox", 1, full, "x: Operation not permitted", ""},
		{"row5 read-only", 101, ro, "cargo failed: Read-only file system when writing target", "probably write (EROFS, guessed)"},
		{"row6 exit 0", 0, ro, "Operation not permitted", ""},
		{"row7 bad system call", 159, ro, "", "probably write (guessed)"},
		{"dash", 2, ro, "sh: 1: cannot create /etc/x: Read-only file system", "probably write /etc/x (EROFS, guessed)"},
		{"bash", 1, ro, "bash: line 1: /etc/x: Read-only file system", "probably write /etc/x (EROFS, guessed)"},
		{"quotes", 1, ro, "mkdir: cannot create directory ‘/a b/c’: Permission denied", "probably write /a b/c (EACCES, guessed)"},
		{"python", 1, ro, "OSError: [Errno 30] Read-only file system: '/etc/x'", "probably write /etc/x (EROFS, guessed)"},
		{"relative", 1, ro, "touch: cannot touch 'x': Read-only file system", "probably write (EROFS, guessed)"},
		{"only a word", 1, ro, "the sandbox is empty", "probably write (guessed)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := &DeniedRun{Policy: test.policy, OS: "linux"}
			got := ""
			ds := r.Guess(test.exit, nil, []byte(test.stderr))
			if len(ds) > 0 {
				got = ds[0].String()
			}
			if got != test.want || len(ds) > 1 {
				t.Errorf("got %v, want %q", ds, test.want)
			}
		})
	}
	t.Run("what the policy allows was something else", func(t *testing.T) {
		p := sandbox.WorkspaceWrite("/w").Bind(sandbox.Places{Dir: "/w"})
		r := &DeniedRun{Policy: p, OS: "linux"}
		if ds := r.Guess(1, nil, []byte("touch: cannot touch '/w/x': Permission denied")); len(ds) > 0 {
			t.Errorf("got %v", ds)
		}
	})
}

// TestHidden: a command that failed and says that a hidden store was closed to it gets a guess
// with the grant for that store.
func TestHidden(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.MkdirAll(home+"/.aws", 0o700); err != nil {
		t.Fatal(err)
	}
	said := []byte("boto: open " + home + "/.aws/credentials: permission denied\n")
	for _, tt := range []struct {
		name   string
		exit   int
		policy sandbox.Policy
		stderr []byte
		grant  string
	}{
		{"closed", 1, sandbox.ReadOnly(), said, "--grant credentials:aws"},
		{"it did not fail", 0, sandbox.ReadOnly(), said, ""},
		{"another error", 1, sandbox.ReadOnly(), []byte(home + "/.aws/credentials: bad syntax\n"), ""},
		{"another file", 1, sandbox.ReadOnly(), []byte(home + "/.x: Permission denied\n"), ""},
		{"granted", 1, sandbox.ReadOnly().With(sandbox.Grant{Name: "credentials:aws"}), said, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &DeniedRun{Policy: tt.policy, OS: "linux", Local: true}
			got := r.Hidden(tt.exit, nil, tt.stderr)
			switch {
			case tt.grant == "" && len(got) > 0, tt.grant != "" && len(got) != 1:
				t.Fatalf("%+v", got)
			case tt.grant != "" && (got[0].Grant != tt.grant || got[0].Source != sandbox.Guessed ||
				got[0].Path != home+"/.aws" || got[0].Op != sandbox.Read):
				t.Errorf("%+v", got[0])
			}
		})
	}
}
