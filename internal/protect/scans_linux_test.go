// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/gitpaths"
)

// TestScansFollowNoLink: what is known of searches is saved in the state directory, and not in
// what has taken its place.
func TestScansFollowNoLink(t *testing.T) {
	root := t.TempDir()
	for _, linked := range []bool{false, true} {
		state := filepath.Join(t.TempDir(), "state")
		s := &Scans{State: state}
		if linked {
			state = filepath.Join(t.TempDir(), "outside")
			if err := os.Symlink(state, s.State); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(state, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := s.with(root, func(c *gitpaths.Cache) error { gitpaths.Scan(root, c, gitpaths.Limit{}); return nil }); err != nil {
			t.Error(err)
		}
		if saved, _ := filepath.Glob(filepath.Join(state, "scans", "*")); (len(saved) == 1) == linked {
			t.Errorf("linked %v: saved %q", linked, saved)
		}
	}
}
