// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       [2]uint
	}{
		{"Debian", "bubblewrap 0.8.0\n", [2]uint{0, 8}}, {"newer", "bubblewrap 0.12.1", [2]uint{0, 12}}, {"first", "bubblewrap 1.0", [2]uint{1, 0}},
		{"nothing", "", [2]uint{}}, {"words", "bubblewrap of soap", [2]uint{}}, {"negative", "bubblewrap -1.-9", [2]uint{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if major, minor := version(c.text); [2]uint{major, minor} != c.want {
				t.Errorf("%d.%d", major, minor)
			}
		})
	}
}

func TestUnsafe(t *testing.T) {
	testenv.RunAsOrdinary(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, safe := range map[string]bool{"/usr/bin/env": true, file: false, "/tmp/nothing-here": false} {
		if why := unsafeProgram(name); (why == "") != safe {
			t.Errorf("%s: %q", name, why)
		}
	}
}
