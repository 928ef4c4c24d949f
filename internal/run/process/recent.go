// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"crypto/sha256"
	"slices"
)

// A Recent keeps the last items by identities that others chose, which may be long. The zero Recent
// keeps none. It must not be copied or used by several goroutines at once.
type Recent[T any] struct {
	// Most is how many items are kept.
	Most int

	known map[digest]T
	order []digest // the same, the oldest first
}

type digest [sha256.Size]byte

func of(id string) digest { return sha256.Sum256([]byte(id)) }

// Find returns the item with an identity, and whether there is one.
func (r *Recent[T]) Find(id string) (T, bool) {
	if len(r.known) == 0 {
		var none T
		return none, false
	}
	item, ok := r.known[of(id)]
	return item, ok
}

// Add keeps an item with an identity that none has.
func (r *Recent[T]) Add(id string, item T) {
	if r.known == nil {
		r.known = make(map[digest]T)
	}
	d := of(id)
	r.known[d] = item
	r.order = append(r.order, d)
	if len(r.order) > r.Most {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
}

// Remove forgets the item with an identity, if there is one.
func (r *Recent[T]) Remove(id string) {
	d := of(id)
	if i := slices.Index(r.order, d); i >= 0 {
		delete(r.known, d)
		r.order = slices.Delete(r.order, i, i+1)
	}
}
