// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import "github.com/sallyport-dev/sallyport/sandbox"

// Begin begins to make, beside what its caller does, what the first launch in a mode
// will need: the launching thread and, for a sandbox, what is known about the machine,
// the private /tmp and the journal of guarded names. It returns at once, and only the
// first call does something; Start is one. What fails here fails again where it is
// needed, and is told there.
func (h *Host) Begin(mode sandbox.Mode) {
	h.beginOnce.Do(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.closed {
			return
		}
		h.beginning.Go(func() {
			_ = h.launcher.Prepare()
			if mode != sandbox.Managed {
				return
			}
			if keeper, err := h.guard(); err == nil {
				_ = keeper.Prepare()
			}
		})
	})
}
