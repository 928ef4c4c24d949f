// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestListing: a name is missing for certain only in a directory that was read to its end, and whose names
// no file system confuses.
func TestListing(t *testing.T) {
	t.Parallel()
	many := []string{".bashrc"}
	for i := range fewNames {
		many = append(many, fmt.Sprint("f", i))
	}
	for _, test := range []struct {
		name, ask string
		names     []string
		most      int
		want      bool
	}{
		{"missing", ".profile", []string{".bashrc"}, 100, true},
		{"there", ".bashrc", []string{".bashrc"}, 100, false},
		{"in another case", ".bashrc", []string{".BashRC"}, 100, false},
		{"beside letters that fold", ".profile", []string{".profıle"}, 100, false},
		{"asked for letters that fold", "\u212a", []string{"k"}, 100, false},
		{"empty", ".profile", nil, 100, true},
		{"as many as are read", ".profile", []string{"a", "b"}, 2, false},
		{"too many to compare", ".profile", many, 4096, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, name := range test.names {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if got := List(f, test.most).Lacks(test.ask); got != test.want {
				t.Errorf("lacks %s: %v, want %v", test.ask, got, test.want)
			}
		})
	}
	if (Listing{}).Lacks("x") {
		t.Error("the zero listing is certain")
	}
}
