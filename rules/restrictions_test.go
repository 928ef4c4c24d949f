// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import "testing"

func TestRestrictions(t *testing.T) {
	set, err := Parse("r", []byte(`prefix_rule(["ls"])
prefix_rule(["git", ["push", "fetch"]], "prompt", justification = "why")
prefix_rule(["make"], sandbox = "read-only")
prefix_rule(["go"], sandbox = "outside")
prefix_rule(["Straße"], "forbidden", canonical_matching = True)
`))
	if err != nil {
		t.Fatal(err)
	}
	all := set.Restrictions()
	if len(all) != 3 {
		t.Fatalf("%d restrictions, want 3", len(all))
	}
	r := all[0]
	if r.Decision != Prompt || r.Line != 2 || r.Justification != "why" || len(r.Pattern) != 2 ||
		len(r.Pattern[1]) != 2 || r.Equal("git", "GIT") || !r.Equal("git", "git") {
		t.Errorf("%+v", r)
	}
	if r = all[1]; r.Decision != Allow || r.Sandbox != ReadOnly {
		t.Errorf("%+v", r)
	}
	if r = all[2]; r.Decision != Forbid || !r.Equal(r.Pattern[0][0], "STRASSE") ||
		r.Equal(r.Pattern[0][0], "Strase") {
		t.Errorf("%+v", r)
	}
	if (*Set)(nil).Restrictions() != nil {
		t.Error("a nil Set has restrictions")
	}
}
