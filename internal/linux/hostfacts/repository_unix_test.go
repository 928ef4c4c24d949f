// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package hostfacts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestRepository: a repository is found above a directory, and none that another user has put there.
func TestRepository(t *testing.T) {
	t.Parallel()
	const other = 54321
	for _, c := range []struct {
		name  string
		make  []string       // directories, and files without a slash at the end
		owner map[string]int // needs root
		dir   string
		want  string // "-" for none
	}{
		{"the top", []string{"r/.git/"}, nil, "r", "r"},
		{"a part", []string{"r/.git/", "r/a/b/"}, nil, "r/a/b", "r"},
		{"a work tree", []string{"r/.git", "r/a/"}, nil, "r/a", "r"},
		{"the nearest", []string{"r/.git/", "r/a/.git/", "r/a/b/"}, nil, "r/a/b", "r/a"},
		{"a missing directory", []string{"r/.git/"}, nil, "r/none", "-"},
		{"another user's .git", []string{"r/.git/", "r/a/"}, map[string]int{"r/.git": other}, "r/a", "-"},
		{"another user's directory above", []string{"r/.git/", "r/a/"},
			map[string]int{"r": other}, "r/a", "-"},
		{"the user's, for root", []string{"r/.git/", "r/a/"},
			map[string]int{"r/.git": other, "r": other, "r/a": other}, "r/a", "r"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.owner != nil {
				testenv.NeedRoot(t)
			}
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range c.make {
				at := filepath.Join(base, name)
				if name[len(name)-1] == '/' {
					err = os.MkdirAll(at, 0o755)
				} else if err = os.MkdirAll(filepath.Dir(at), 0o755); err == nil {
					err = os.WriteFile(at, []byte("gitdir: x"), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for name, uid := range c.owner {
				if err := os.Chown(filepath.Join(base, name), uid, -1); err != nil {
					t.Fatal(err)
				}
			}
			want := filepath.Join(base, c.want)
			if got := Repository(filepath.Join(base, c.dir)); got != want && (c.want != "-" || got != "") {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
