// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/internal/observer"
	"github.com/sallyport-dev/sallyport/internal/protect"
)

// A keeping is what is kept around one command. The zero keeping keeps nothing.
type keeping struct {
	names  *protect.Protection // nil protects nothing
	caches *caches.Layers      // private layers over toolchain caches; nil without
	layers []string            // places that overlays stand at
}

// release lets the claims and the slot go. It may be called twice.
func (k *keeping) release() {
	k.names.Release()
	k.caches.Release()
}

// observed returns what the observer has to know of the names that are kept.
func (k *keeping) observed() observer.Names {
	n := k.names.Observed()
	n.Free = append(n.Free, k.layers...)
	return n
}

// guard returns what keeps names for this Host, and what searches for repositories
// have found. Both are made when they are first needed.
func (h *Host) guard() (*guard.Keeper, *protect.Scans, error) {
	state, _, err := h.private()
	if err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, errClosed
	}
	if h.keeper == nil {
		h.keeper, h.scans = &guard.Keeper{State: state}, &protect.Scans{State: state}
	}
	return h.keeper, h.scans, nil
}
