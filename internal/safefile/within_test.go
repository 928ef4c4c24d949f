// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import "testing"

func TestWithin(t *testing.T) {
	for _, test := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true},
		{"/a/b", "/a", true},
		{"/a/b", "/a/", true},
		{"/ab", "/a", false},
		{"/a", "/a/b", false},
		{"/a", "/b", false},
		{"/", "/", true},
		{"/a", "/", true},
		{"/a", "", true},
		{"a", "/", false},
		{"", "/a", false},
	} {
		if got := Within(test.path, test.dir); got != test.want {
			t.Errorf("%q in %q: %v", test.path, test.dir, got)
		}
	}
}
