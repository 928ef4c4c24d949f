// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package patch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestSwappedLinks exchanges a directory and a link while patches are planned and applied.
//
// Attack: a command beside swaps a directory of the root for a link to a protected one, inside of the
// root or outside, between the look and the write. Wall: names are resolved before, and every directory is
// opened by its parent's descriptor as what was looked at, which is no link.
func TestSwappedLinks(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, target string }{{"outside", "out"}, {"inside", "tree/protected"}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			top, journals := testenv.RealTemp(t), testenv.RealTemp(t)
			tree, target := filepath.Join(top, "tree"), filepath.Join(top, test.target)
			put(t, filepath.Join(tree, "dir/sub/f"), "f\n")
			put(t, filepath.Join(target, "sub/f"), "f\n")
			want := testenv.Contents(t, target)
			to, err := filepath.Rel(tree, target) // an absolute one is refused in any case
			if err != nil {
				t.Fatal(err)
			}
			dir, away := filepath.Join(tree, "dir"), filepath.Join(tree, "away")
			text := "*** Begin Patch\n*** Add File: dir/sub/new\n+x\n*** End Patch"
			p, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			swap := func() {
				if err := errors.Join(os.Rename(dir, away), os.Symlink(to, dir)); err != nil {
					t.Fatal(err)
				}
			}
			restore := func() {
				if err := errors.Join(os.Remove(dir), os.Rename(away, dir)); err != nil {
					t.Fatal(err)
				}
			}
			for at := 0; ; at++ { // at each look and each change: the planned names are of the directory
				n, swapped := 0, false
				step := func() {
					if n++; n == at {
						swap()
						swapped = true
					}
				}
				plan, err := Make(context.Background(), p, Options{Dir: tree, Allow: within(tree)})
				if err != nil {
					t.Fatal(err)
				}
				if at == 0 { // nothing is open yet
					for name, d := range plan.tree.open {
						if name != tree {
							d.Close()
							delete(plan.tree.open, name)
						}
					}
					swap()
					swapped = true
				}
				err = plan.apply(context.Background(), journals, step)
				plan.Close()
				if at == 0 && err == nil {
					t.Error("it says nothing")
				}
				if diff := cmp.Diff(want, testenv.Contents(t, target)); diff != "" {
					t.Fatalf("at %d it wrote behind the link (- before, + after): %s", at, diff)
				}
				if !swapped {
					break
				}
				restore()
				err = errors.Join(os.RemoveAll(filepath.Join(dir, "sub")), recoverIn(journals))
				if err != nil {
					t.Fatal(err)
				}
				put(t, filepath.Join(dir, "sub/f"), "f\n")
			}
		})
	}
}

// TestFailsInDirectories: where a directory forbids a change, the reason is told, nothing is changed, and
// nothing is left that would stop later patches.
func TestFailsInDirectories(t *testing.T) {
	testenv.RunAsOrdinary(t)
	if os.Getuid() == 0 {
		return // nothing is forbidden to root
	}
	tree, journals := testenv.RealTemp(t), testenv.RealTemp(t)
	ro := filepath.Join(tree, "ro")
	put(t, filepath.Join(tree, "a"), "a\n")
	put(t, filepath.Join(ro, "f"), "a\n")
	if err := os.Chmod(ro, 0o500); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(ro, 0o700) }()
	want := testenv.Contents(t, tree)
	for _, hunk := range []string{"*** Update File: ro/f\n@@\n-a\n+b", "*** Delete File: ro/f",
		"*** Add File: ro/n\n+x", "*** Add File: ro/d/n\n+x"} {
		text := "*** Begin Patch\n*** Update File: a\n@@\n-a\n+b\n" + hunk + "\n*** End Patch"
		_, err := applyText(text, Options{Dir: tree, Allow: within(tree)}, journals)
		if err == nil || !strings.Contains(err.Error(), "Permission denied (os error 13)") {
			t.Errorf("%s: %v", hunk, err)
		}
		if diff := cmp.Diff(want, testenv.Contents(t, tree)); diff != "" {
			t.Errorf("%s: it changed (- before, + after): %s", hunk, diff)
		}
	}
	if err := recoverIn(journals); err != nil {
		t.Error(err)
	}
}
