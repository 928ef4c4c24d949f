// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package git

import (
	"os"
	"slices"
	"testing"
)

// TestCheckBareAround: git obeys a bare repository that the work tree is, once .git is none.
func TestCheckBareAround(t *testing.T) {
	bare := func(dir string) {
		put(t, dir+"/objects/", "")
		put(t, dir+"/refs/", "")
		put(t, dir+"/config", "[core]\n\tbare = false\n\tworktree = .\n")
		put(t, dir+"/HEAD", "ref: refs/heads/main\n")
	}
	for name, spoil := range map[string]func(git string) error{
		"HEAD removed":    func(git string) error { return os.Remove(git + "/HEAD") },
		"HEAD empty":      func(git string) error { return os.Truncate(git+"/HEAD", 0) },
		"HEAD of no form": func(git string) error { return os.WriteFile(git+"/HEAD", []byte("x\n"), 0o600) },
		"no objects":      func(git string) error { return os.RemoveAll(git + "/objects") },
		"refs moved":      func(git string) error { return os.Rename(git+"/refs", git+"/x") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := tempDir(t)
			plainRepository(t, dir)
			s := taken(t, dir)
			if _, places := s.Look(); slices.Contains(places, dir) {
				t.Error("the work tree is watched, where git does not look")
			}
			if err := spoil(dir + "/.git"); err != nil {
				t.Fatal(err)
			}
			if found, places := s.Look(); !slices.Contains(places, dir) {
				t.Errorf("the work tree is not watched: %+v", found)
			}
			bare(dir)
			if out := git(t, dir, "rev-parse", "--absolute-git-dir"); out != dir+"\n" {
				t.Errorf("git obeys %q", out)
			}
			found, _ := s.Look()
			want(t, found, dir+"/HEAD", "")
			want(t, checked(t, s), dir+"/HEAD", "")
			late, err := Recall(s.Text(), Outside{})
			if err != nil {
				t.Fatal(err)
			}
			want(t, checked(t, late), dir+"/HEAD", "")
			if _, found := find(checked(t, taken(t, dir)), dir+"/HEAD"); found {
				t.Error("it was there before")
			}
		})
	}
	t.Run("beside a .git that is none", func(t *testing.T) {
		dir := tempDir(t)
		put(t, dir+"/.git/config", "")
		if open(t, dir).Usable() {
			t.Error("usable")
		}
		s, err := Take(dir, nil, Outside{}, nil)
		if err != nil || len(checked(t, s)) != 0 {
			t.Errorf("the .git of a user is found: %v", err)
		}
		bare(dir)
		want(t, checked(t, s), dir+"/HEAD", "")
	})
}
