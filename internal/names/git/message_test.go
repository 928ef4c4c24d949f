// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package git

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
			&IndexError{Path: name, Why: word, Err: cause}, &LinkError{Path: name, Why: word},
			&ConfigError{Path: name, Line: 1}, &ConfigError{Path: name, Err: cause},
		} {
			testenv.Printed(t, err.Error(), 1)
		}
	}
}
