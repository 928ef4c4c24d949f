// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"context"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

func TestDoctorLevels(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := bwrapArena(t)
	before := descriptors(t)
	for _, c := range a.host.Levels(t.Context()) {
		if !c.Available || c.Why != "" || len(c.Holds) == 0 || (len(c.Lacks) == 0) != (c.Level == "native") {
			t.Errorf("%+v", c)
		}
	}
	if after := descriptors(t); len(after) > len(before) {
		t.Errorf("%q are open, before it was %q", after, before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range a.host.Levels(ctx) {
		if c.Available || !strings.HasPrefix(c.Why, "not tried") {
			t.Errorf("%+v", c)
		}
	}
}
