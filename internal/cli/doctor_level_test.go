// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/doctor"
)

// TestDiagnoseLevel: the level is the one that is available, and none where
// something needed is missing.
func TestDiagnoseLevel(t *testing.T) {
	for _, tt := range []struct {
		name string
		ok   bool
		want string
	}{{"passed", true, "seatbelt"}, {"failed", false, "none"}} {
		t.Run(tt.name, func(t *testing.T) {
			d := diagnose([]doctor.Check{{Name: "whole sandbox", Needed: true, OK: tt.ok}, {Name: "more", OK: true}},
				[]doctor.LevelCheck{{Level: "seatbelt", Available: tt.ok}})
			if d.Level != tt.want || strings.Contains(d.String(), "(level: seatbelt)") != tt.ok {
				t.Errorf("level %s\n%s", d.Level, d)
			}
		})
	}
}
