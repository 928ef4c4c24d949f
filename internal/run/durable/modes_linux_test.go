// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// TestModes: others can neither read nor list what is kept.
func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	l := open(t, dir).Create(Record{ID: "1"})
	for name, want := range map[string]os.FileMode{"": 0o700, l.name: 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
}
