// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestMessagesPrint gives the words of an attacker to all errors.
func TestMessagesPrint(t *testing.T) {
	for _, word := range testenv.Hostile() {
		name, cause := "/w/"+word, errors.New(word)
		for _, err := range []error{
			&StartError{Program: name, Err: cause},
			&NULError{Where: word},
			&DirError{Dir: name, Err: cause},
			&DirError{Dir: name, Err: &sandbox.HiddenError{What: word, Path: name}},
			&RootError{Path: name, Why: word, Fix: word},
		} {
			testenv.Printed(t, err.Error(), 1)
		}
	}
	if got, want := (&RootError{Path: "/é b", Why: "cannot be used"}).Error(),
		"/é b cannot be used"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
