// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package suffixes

import "testing"

func TestIsPublic(t *testing.T) {
	for name, want := range map[string]bool{
		"com": true, "co.uk": true, "github.io": true, "xn--p1ai": true,
		"example.com": false, "uk.com.example": false, "internal": false, "localhost": false, "": false,
	} {
		if IsPublic(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
