// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import "testing"

// TestRecent: the last items are kept; the identities of others, however long, are not.
func TestRecent(t *testing.T) {
	r := Recent[int]{Most: 2}
	check := func(id string, want int) {
		t.Helper()
		if got, ok := r.Find(id); got != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", id, got, ok, want)
		}
	}
	check("a", 0)
	r.Add("a", 1)
	r.Add("b", 2)
	check("a", 1)
	r.Add("c", 3)
	check("a", 0)
	check("b", 2)
	r.Remove("b")
	r.Remove("none")
	check("b", 0)
	r.Add("d", 4)
	check("c", 3)
	check("d", 4)
	r.Add("", 5)
	check("", 5)
	check("c", 0)
	if len(r.known) != 2 || len(r.order) != 2 {
		t.Errorf("%d and %d are kept", len(r.known), len(r.order))
	}
	none := Recent[int]{}
	none.Add("a", 1)
	if _, ok := none.Find("a"); ok {
		t.Error("the zero Recent keeps an item")
	}
}
