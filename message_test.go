// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// TestMessagesPrint gives the words of an attacker to all errors.
func TestMessagesPrint(t *testing.T) {
	for _, word := range testenv.Hostile() {
		res, cause := &Result{Args: []string{"/w/" + word}, ExitCode: 1}, errors.New(word)
		for _, err := range []error{
			&CmdError{Reason: word}, &CmdError{Field: "Dir", Reason: word},
			&ExitError{Result: res}, &ExitError{Result: &Result{Args: res.Args, Signal: 9}}, &TimeoutError{Result: res},
			&WriterError{Missed: 1, Err: cause},
			&TooManySessionsError{Max: 1, Candidates: []SessionInfo{{ID: "1", Args: []string{word, word}}}},
		} {
			testenv.Printed(t, err.Error(), 1)
		}
		testenv.Printed(t, res.String(), 1)
	}
}
