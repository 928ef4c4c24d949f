// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestCanceled cancels a patch before each change to a file system: the old or the new tree is left, and no
// journal.
func TestCanceled(t *testing.T) {
	t.Parallel()
	undone, done := 0, 0
	for at := 1; ; at++ {
		tree, journals := testenv.RealTemp(t), testenv.RealTemp(t)
		plan := makePlan(t, twenty(t, tree), tree)
		want := testenv.Contents(t, tree)
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err := plan.apply(ctx, journals, func() {
			if n++; n == at {
				cancel()
			}
		})
		cancel()
		changed := !cmp.Equal(want, testenv.Contents(t, tree))
		if changed != (err == nil) || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("at %d: %v, changed: %t", at, err, changed)
		}
		if left, _ := filepath.Glob(filepath.Join(journals, "*.*")); len(left) > 0 {
			t.Errorf("at %d journals are left: %v", at, left)
		}
		if n < at {
			break
		}
		if err == nil {
			done++
		} else {
			undone++
		}
	}
	t.Logf("canceled at %d changes: %d old trees, %d new ones", undone+done, undone, done)
	if undone < 20 || done < 2 {
		t.Error("that is too few")
	}
}

// TestSearchCanceled: the search for the places of a patch ends with its context.
func TestSearchCanceled(t *testing.T) {
	t.Parallel()
	const some = 1 << 17
	ctx, cancel := context.WithCancel(t.Context())
	w := work{stop: ctx.Done()}
	if w.do(some) {
		t.Error("it ended before")
	}
	cancel()
	if !w.do(some) {
		t.Error("it goes on")
	}
	tree := testenv.RealTemp(t)
	put(t, filepath.Join(tree, "f"), "a\n")
	p, err := Parse("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Make(ctx, p, Options{Dir: tree}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
