// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"slices"
	"strings"
	"testing"
)

// row40: bursts. Nothing promises their order, so what is asked for is that most
// of them are right: reading one stream after the other gets none right.
func TestOrderBurst(t *testing.T) {
	checkFDs(t)
	var shared Shared
	defer shared.Close()
	const rounds = 60
	right := 0
	for range rounds {
		var h heard
		cfg := Config{Output: h.output, Shared: &shared}
		wait(t, start(t, cfg, sh("echo 0; echo 1 >&2; echo 2; echo 3 >&2; echo 4")))
		if h.String() == countTo(5) {
			right++
		}
		if got := slices.Sorted(slices.Values(lines(h.String()))); strings.Join(got, "") != "01234" {
			t.Fatalf("lines were lost or cut: %q", h.String())
		}
	}
	if right < rounds/2 {
		t.Errorf("%d of %d bursts came in order, want most", right, rounds)
	}
}
