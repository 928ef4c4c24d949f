// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestApplyIsDirect does random operations in a stage, and directly in the same tree: after apply both
// are equal, and until then the host's is untouched. Another stage is discarded path by path.
func TestApplyIsDirect(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for seed := range testenv.Rounds(20, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 34))
			start, ops := randomOps(r, 30), randomOps(r, 30)
			begun := time.Now()
			direct, before := directTrial(t, start, ops)
			if parts(before, look(t, direct.root), ops) {
				start = slices.DeleteFunc(start, func(o op) bool { return o.Do == "ln" })
				direct, before = directTrial(t, start, ops)
			}
			staged := newTrial(t, mkdir(t, t.TempDir(), "staged"))
			begin(t, staged, start)
			staged.run(ops...)
			between := time.Since(begun)
			if diff := cmp.Diff(before, look(t, staged.root)); diff != "" {
				t.Fatalf("the run changed the host: %s", diff)
			}
			want := look(t, direct.root)
			total := len(staged.changes())
			if r.IntN(2) == 0 {
				discardSome(t, r, staged, before)
				return
			}
			if r.IntN(2) == 0 {
				applySome(t, r, staged)
			}
			a := staged.apply(executor.ApplyOptions{})
			if a.Left != 0 || len(a.Refused) > 0 {
				t.Errorf("%d changes, %+v", total, a)
			}
			sameTree(t, look(t, staged.root), want, before, between)
			staged.clean()
			// Others than root cannot compare what they cannot read.
			if left := staged.changes(); len(left) > 0 && os.Geteuid() == 0 {
				t.Errorf("the stage still has %q", left)
			}
			if t.Failed() {
				t.Logf("start %+v", start)
				t.Logf("ops %+v", ops)
			}
		})
	}
}

// directTrial does operations directly, and returns how the tree was before.
func directTrial(t *testing.T, start, ops []op) (x *trial, before map[string]seen) {
	t.Helper()
	x = newTrial(t, mkdir(t, t.TempDir(), "direct"))
	begin(t, x, start)
	before = look(t, x.root)
	inNamespaces(t, &childTask{Root: x.root, Ops: ops})
	return x, before
}

func begin(t *testing.T, x *trial, start []op) {
	t.Helper()
	inNamespaces(t, &childTask{Root: x.root, Ops: start})
	inNamespaces(t, &childTask{Root: x.root, Ops: ageOps(look(t, x.root))})
}

// parts reports whether operations have changed a file of the host through one of several names, or may have:
// overlays change that name only, and part it from the others.
func parts(before, want map[string]seen, ops []op) bool {
	for _, o := range ops {
		names := before[o.A].Links
		if o.Do == "mv" && strings.Contains(names, " ") && names == before[o.B].Links {
			return true // both have the file, so a direct run does nothing
		}
	}
	for name, old := range before {
		names := strings.Split(old.Links, " ")
		w, ok := want[name]
		if len(names) < 2 || !ok || w.Links == "" {
			continue
		}
		if old.Text != w.Text || old.Mode != w.Mode || old.Attrs != w.Attrs {
			return true // or it was replaced
		}
		now := strings.Split(w.Links, " ")
		is := func(other string) bool { return slices.Contains(now, other) }
		if len(now) > 1 && slices.ContainsFunc(names, func(n string) bool { return !is(n) }) {
			return true // one of them may have been moved
		}
	}
	return false
}

func mkdir(t testing.TB, elem ...string) string {
	t.Helper()
	dir := filepath.Join(elem...)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// applySome applies some of the changes alone: the rest stays.
func applySome(t *testing.T, r *rand.Rand, x *trial) {
	t.Helper()
	all := x.changes()
	if len(all) == 0 {
		return
	}
	_, path, _ := strings.Cut(all[r.IntN(len(all))], " ")
	a := x.apply(executor.ApplyOptions{Paths: []string{filepath.Join(x.root, path)}})
	if len(a.Applied) == 0 || a.Left+len(a.Applied) != len(all) {
		t.Errorf("%q of %q: %+v", path, all, a)
	}
	x.clean()
	var want []string
	for _, c := range all {
		_, path, _ := strings.Cut(c, " ")
		if !slices.Contains(a.Applied, path) {
			want = append(want, c)
		}
	}
	if diff := cmp.Diff(want, x.changes()); diff != "" {
		t.Errorf("%q was applied of %q (- want, + left): %s", a.Applied, all, diff)
	}
}

// discardSome discards one change after the other.
func discardSome(t *testing.T, r *rand.Rand, x *trial, before map[string]seen) {
	t.Helper()
	for {
		all := x.changes()
		if len(all) == 0 {
			break
		}
		_, path, _ := strings.Cut(all[r.IntN(len(all))], " ")
		left, err := Discard(context.Background(), x.stage, filepath.Join(x.root, path))
		if err != nil {
			t.Fatal(err)
		}
		now := x.changes()
		if left != len(now) || len(now) >= len(all) {
			t.Fatalf("%q of %q: left %q, says %d", path, all, now, left)
		}
		for _, c := range now {
			if !slices.Contains(all, c) {
				t.Fatalf("%q of %q discarded: %q is new", path, all, c)
			}
		}
	}
	if diff := cmp.Diff(before, look(t, x.root)); diff != "" {
		t.Errorf("discarding changed the host: %s", diff)
	}
}

// ageOps gives all files an old time.
func ageOps(tree map[string]seen) []op {
	var out []op
	for path, s := range tree {
		if s.Text != "" && s.Links != "" {
			out = append(out, op{Do: "old", A: path, N: 1_600_000_000})
		}
	}
	return out
}

// randomOps makes operations on a few names, so that they meet. Contents are unique.
func randomOps(r *rand.Rand, n int) []op {
	names := []string{"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/a", "e", "e/a", "e/b", "e/d/a", "e/d",
		"new\nline",
		"a.txt",
		"-x", "\xff"}
	pick := func(of []string) string { return of[r.IntN(len(of))] }
	modes := []int{0o755, 0o700, 0o555, 0o775, 0o1777}
	fileModes := []int{0o644, 0o600, 0o755, 0o444, 0, 0o200}
	var out []op
	for range n {
		o := op{A: pick(names), B: fmt.Sprintf("text %d", r.Uint64()), N: 1 + r.IntN(40)}
		switch r.IntN(18) {
		case 0, 1, 2, 3:
			o.Do = "write"
		case 4:
			o.Do = "append"
		case 5:
			o.Do = "replace"
		case 6, 7, 8:
			o.Do, o.N = "mkdir", pick2(r, modes)
		case 9:
			o.Do = "rm"
		case 10:
			o.Do = "rmtree"
		case 11:
			o.Do, o.B = "mv", pick(names)
		case 12:
			o.Do, o.B = "ln", pick(names)
		case 13:
			o.Do, o.B = "symlink", pick(names)
		case 14:
			o.Do, o.N = "chmod", pick2(r, fileModes)
			if len(o.A)%2 == 0 {
				o.N = pick2(r, modes)
			}
		case 15:
			o.Do = "setattr"
		case 16:
			o.Do = "rmattr"
		case 17:
			o.Do = "sparse"
		}
		out = append(out, o)
	}
	return out
}

func pick2(r *rand.Rand, of []int) int { return of[r.IntN(len(of))] }
