// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// TestRead: both ways of reading a file return what it holds, and one of them no more than is asked for.
func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size int
		most int64
		more bool
	}{
		"empty":        {0, 10, false},
		"short":        {5, 10, false},
		"as much":      {10, 10, false},
		"one too many": {11, 10, true},
		"nothing":      {3, 0, true},
		"large":        {100_000, 1 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.Repeat("x", c.size)
			path := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
			text, more, err := safefile.Read(path, c.most)
			if err != nil || more != c.more || string(text) != want[:min(c.size, int(c.most))] {
				t.Errorf("Read: %d bytes, more %v, %v", len(text), more, err)
			}
			if text, err := safefile.ReadSystem(path); err != nil || string(text) != want {
				t.Errorf("ReadSystem: %d bytes, %v", len(text), err)
			}
		})
	}
	dir := t.TempDir()
	if _, _, err := safefile.Read(dir, 1); !errors.Is(err, safefile.ErrNotPlain) {
		t.Errorf("Read of a directory: %v", err)
	}
	if _, err := safefile.ReadSystem(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadSystem of a missing file: %v", err)
	}
	if _, err := safefile.ReadSystem(dir); err == nil {
		t.Error("ReadSystem of a directory has no error")
	}
}
