// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestRequirements: what is shown is what is opened, and nothing else opens anything.
func TestRequirements(t *testing.T) {
	for _, test := range []struct {
		name    string
		outside bool
		grants  []sandbox.Grant
		words   []string
	}{
		{"nothing", false, nil, nil},
		{"outside", true, []sandbox.Grant{{Name: "git"}}, []string{"outside"}},
		{"path to write", false, []sandbox.Grant{{Path: "/a:b", Level: sandbox.LevelWrite}}, []string{"write:/a:b"}},
		{"path to read", false, []sandbox.Grant{{Path: "/a", Level: sandbox.LevelRead}}, []string{"read:/a"}},
		{"host", false, []sandbox.Grant{{Addr: "h:443"}}, []string{"host:h:443"}},
		{"opening", false, []sandbox.Grant{{Opening: "unix"}}, []string{"allow:unix"}},
		{"twice", false, []sandbox.Grant{{Name: "git"}, {Name: "git"}}, []string{"grant:git"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			words := Requirements(test.outside, test.grants)
			outside, grants := Opened(words)
			if !slices.Equal(words, test.words) || outside != test.outside || !outside &&
				!slices.Equal(grants, slices.Compact(test.grants)) {
				t.Errorf("%q opens %v, %+v", words, outside, grants)
			}
		})
	}
	if outside, grants := Opened([]string{"", "outsider", "outside:", "outside:x", "deny:/", "write",
		"write:", "x:y"}); outside || len(grants) > 0 {
		t.Errorf("unknown words open %v, %+v", outside, grants)
	}
}
