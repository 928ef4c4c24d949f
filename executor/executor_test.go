// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"io/fs"
	"testing"
)

func TestErrors(t *testing.T) {
	cause := errors.New("x: not found")
	tests := []struct {
		name  string
		err   error
		want  string
		cause error
	}{
		{"start", &StartError{Program: "x", NotFound: true, Err: cause}, "x: not found", cause},
		{"missing directory", &DirError{Dir: "/d", Err: fs.ErrNotExist}, "the working directory /d does not exist", fs.ErrNotExist},
		{"a file", &DirError{Dir: "/d", Err: ErrNotDir}, "the working directory /d is not a directory", ErrNotDir},
		{"a closed directory", &DirError{Dir: "/d", Err: fs.ErrPermission}, "the working directory /d cannot be entered: permission denied", fs.ErrPermission},
		{"another reason", &DirError{Dir: "/d", Err: cause}, "the working directory /d cannot be used: x: not found", cause},
		{"root", &RootError{Path: "/r", Why: "does not exist", Fix: "create it first"}, "/r does not exist; create it first", nil},
		{"NUL", &NULError{Where: "argument 2"}, "a command cannot contain NUL characters, and there is one in argument 2", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.err.Error(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if test.cause != nil && !errors.Is(test.err, test.cause) {
				t.Errorf("it does not wrap %v", test.cause)
			}
		})
	}
}

func TestStreamNames(t *testing.T) {
	if got := Stdout.String() + " " + Stderr.String(); got != "stdout stderr" {
		t.Errorf("got %q", got)
	}
}
