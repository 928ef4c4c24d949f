// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestMessagesPrint gives the words of an attacker to all errors.
func TestMessagesPrint(t *testing.T) {
	for _, word := range testenv.Hostile() {
		testenv.Printed(t, (&ParseError{Member: word, Reason: word}).Error(), 1)
		testenv.Printed(t, lossy(word).Error(), 1)
	}
}
