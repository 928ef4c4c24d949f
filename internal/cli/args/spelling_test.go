// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// TestSpelledElsewhere: every flag that a hint names exists.
func TestSpelledElsewhere(t *testing.T) {
	flags := new(Options).Flags()
	for written, ours := range syntax.SpelledElsewhere() {
		if syntax.FindLong(flags, written[2:]) != nil {
			t.Errorf("%s is a flag", written)
		}
		if err := syntax.UnknownFlag(flags, written); err == nil ||
			!strings.HasSuffix(err.Error(), fmt.Sprintf("; did you mean %q?", ours)) {
			t.Errorf("%s: %v", written, err)
		}
		if _, err := syntax.ParseFlags(new(Options).Flags(), append(strings.Fields(ours), "host")); err != nil {
			t.Errorf("%s: %v", ours, err)
		}
	}
	if err := syntax.UnknownFlag(nil, "--network"); err.Error() != "unknown flag --network; see --help" {
		t.Error(err)
	}
}
