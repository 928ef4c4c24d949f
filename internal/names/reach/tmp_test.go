// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

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
		policy    *sandbox.Resolved
		dir, path string
		want      bool
	}{
		{&shown, "/w", "/tmp/x", true}, {&shown, "/w", "/tmp/wide", true}, {&shown, "/w", "/tmp/w", false},
		{&shown, "/w", "/tmp/w/p", false}, {&shown, "/w", "/tmp", false}, {&shown, "/w", "/usr/bin/x", false},
		{&open, "/w", "/tmp/x", false}, {&shown, "/tmp/d", "/tmp/d/x", false},
		{&shown, "/tmp/d/e", "/tmp/d/x", true}, {&shown, "/tmp", "/tmp/x", true},
	} {
		if got := InPrivateTmp(test.policy, test.dir, test.path); got != test.want {
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
