// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package buildinfo

import "testing"

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
