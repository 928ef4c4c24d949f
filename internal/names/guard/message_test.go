// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestMessagesPrint gives the words of an attacker to all errors.
func TestMessagesPrint(t *testing.T) {
	for _, word := range testenv.Hostile() {
		name, cause := "/w/"+word, errors.New(word)
		for _, err := range []error{
			&ExistsError{Path: name, Kind: KindGone}, &ExistsError{Path: name, Kind: KindFile},
			&HoldError{Path: name, Op: "look", Err: cause, Fix: word},
			&BrokenError{Path: name, What: "was removed"},
			&BrokenError{Path: name, What: "was made", Again: true},
			&BrokenError{What: word, Unwatched: true},
			&QuarantineError{Path: name, Err: cause},
		} {
			testenv.Printed(t, err.Error(), 1)
		}
	}
}
