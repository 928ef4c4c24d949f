// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestInPrivateTmp(t *testing.T) {
	shown := sandbox.Resolved{Mode: sandbox.Managed,
		Paths: []sandbox.PathRule{{Path: "/tmp/w", Level: sandbox.LevelWrite}}}
	open := sandbox.Resolved{Mode: sandbox.Full}
	for _, test := range []struct {
		policy *sandbox.Resolved
		path   string
		want   bool
	}{
		{&shown, "/tmp/x", true}, {&shown, "/tmp/wide", true}, {&shown, "/tmp/w", false}, {&shown, "/tmp/w/p", false},
		{&shown, "/tmp", false}, {&shown, "/usr/bin/x", false}, {&open, "/tmp/x", false},
	} {
		if got := InPrivateTmp(test.policy, test.path); got != test.want {
			t.Errorf("%s: %v", test.path, got)
		}
	}
}

func TestTmpPaths(t *testing.T) {
	got := TmpPaths([]string{"sh", "-c", "cat </tmp/a.txt; ./x --file=/tmp/b '/tmp/c'", "/tmp/d",
		"/var/tmp/e"})
	if want := []string{"/tmp/a.txt", "/tmp/b", "/tmp/c", "/tmp/d"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
