// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"os"
	"testing"
)

// TestForeignPlaceholder: what a command makes where the placeholder of another user, or of a
// run with another state directory, was removed meanwhile is moved to quarantine. A new
// placeholder stays, and is reported, because it is not covered.
func TestForeignPlaceholder(t *testing.T) {
	for _, tt := range []struct {
		name  string
		make  func(path string) error
		stays bool
	}{
		{"nothing", func(string) error { return nil }, false},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o700) }, false},
		{"a file", func(path string) error { return os.WriteFile(path, nil, 0o600) }, false},
		{"a link", func(path string) error { return os.Symlink("/", path) }, false},
		{"another placeholder", func(path string) error { return os.Mkdir(path, placeholderMode) }, true},
		{"a filled one", func(path string) error {
			return errors.Join(os.Mkdir(path+"x", 0o700), os.WriteFile(path+"x/config", nil, 0o600), os.Chmod(path+"x", placeholderMode), os.Rename(path+"x", path))
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, other := newPlace(t), newPlace(t)
			first := &Keeper{State: other.state}
			f := p.hold(first, p.covers(".codex")...)
			id := inode(t, p.path(".codex"))
			h := p.hold(p.keeper(), Claim{Path: p.path(".codex"), Placeholder: true, Dev: id.dev, Ino: id.ino})
			f.Release()
			check(t, first.Close())
			if exists(p.path(".codex")) {
				t.Fatal("the first placeholder is left")
			}
			check(t, tt.make(p.path(".codex")))
			_, err := h.Finish()
			if exists(p.path(".codex")) != tt.stays {
				t.Errorf("it is there: %v, want %v", !tt.stays, tt.stays)
			}
			var broken *BrokenError
			if errors.As(err, &broken) != tt.stays {
				t.Errorf("%v", err)
			}
			if tt.stays {
				check(t, os.Remove(p.path(".codex")))
			}
		})
	}
}
