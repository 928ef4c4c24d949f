// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// TestRemove removes directories that a command can leave, and nothing else.
func TestRemove(t *testing.T) {
	testenv.RunAsOrdinary(t)
	top := t.TempDir()
	kept := filepath.Join(top, "kept")
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, fill := range map[string]func(dir string) error{
		"nothing":       func(string) error { return nil },
		"missing":       os.Remove,
		"link":          func(dir string) error { return os.Symlink(kept, filepath.Join(dir, "link")) },
		"read-only":     func(dir string) error { return deep(dir, 0o555) },
		"closed":        func(dir string) error { return deep(dir, 0) },
		"closed itself": func(dir string) error { return os.Chmod(dir, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(top, "dir")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := fill(dir); err != nil {
				t.Fatal(err)
			}
			if err := Remove(dir); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("it is still there: %v", err)
			}
			if _, err := os.Stat(filepath.Join(kept, "file")); err != nil {
				t.Error(err)
			}
		})
	}
}

// deep makes nested directories with a file in the last, and removes rights.
func deep(dir string, mode os.FileMode) error {
	inner := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(inner, "file"), nil, 0o444); err != nil {
		return err
	}
	for _, d := range []string{inner, filepath.Dir(inner)} {
		if err := os.Chmod(d, mode); err != nil {
			return err
		}
	}
	return nil
}
