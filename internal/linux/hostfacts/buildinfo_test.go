// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"runtime/debug"
	"testing"
)

func TestVersionLine(t *testing.T) {
	for _, test := range []struct {
		b    Build
		want string
	}{
		{Build{Version: "v1.2.0", Revision: "abc", Time: "2026-11-22T18:00:00Z"}, "sallyport v1.2.0 (go1, s/a)\n"},
		{Build{Version: "(devel)"}, "sallyport (devel) (go1, s/a)\n"},
		{Build{Version: "(devel)", Revision: "abc", Time: "2026-11-22T18:00:00Z"}, "sallyport (devel) abc, 2026-11-22T18:00:00Z (go1, s/a)\n"},
		{Build{Version: "(devel)", Revision: "abc", Time: "T", Modified: true}, "sallyport (devel) abc with changes, T (go1, s/a)\n"},
	} {
		test.b.Go, test.b.System = "go1", "s/a"
		if got := test.b.String(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// TestVersion: the version is that of sallyport, in its own program and in others.
func TestVersion(t *testing.T) {
	own, other := debug.Module{Path: module, Version: "v1.2.0"},
		debug.Module{Path: "example.org/agent", Version: "v7.0.0"}
	for _, test := range []struct {
		name string
		main debug.Module
		deps []*debug.Module
		want string
	}{
		{"its own", own, []*debug.Module{&other}, "v1.2.0"},
		{"another", other, []*debug.Module{{Path: "example.org/a", Version: "v3.0.0"}, &own}, "v1.2.0"},
		{"unknown", debug.Module{Path: module}, nil, ""},
	} {
		if got := version(&debug.BuildInfo{Main: test.main, Deps: test.deps}); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
