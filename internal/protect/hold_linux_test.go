// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/observer"
	"github.com/sallyport-dev/sallyport/internal/plan"
)

// TestObserved: the observer denies every claimed name but those that are only reported.
func TestObserved(t *testing.T) {
	g := &gathering{ruleset: &ruleset{roots: []string{"/ws"}, rules: map[string]plan.Rule{"/ws/known/.git/config": {}}}, tmpAt: "/ws/tmp", mounts: true}
	g.claim(claim{Claim: guard.Claim{Path: "/ws/.git"}})
	g.claim(claim{Claim: guard.Claim{Path: "/ws/reported", ReportOnly: true}})
	got := (&Protection{found: g}).Observed()
	want := observer.Names{Roots: []string{"/ws"}, Free: []string{"/ws/tmp"}, Protected: []string{"/ws/.git"}, Ruled: []string{"/ws/known/.git/config"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
