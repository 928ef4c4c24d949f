// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"

	"github.com/sallyport-dev/sallyport/internal/guard"
	"github.com/sallyport-dev/sallyport/sandbox"
)

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

// end is the end of a Host that was closed. What a command could still use goes when
// the kernel has killed everything; where all commands are over, nobody waits for
// their namespaces to be taken down.
func (h *Host) end(tmp *privateTmp, keeper *guard.Keeper) error {
	launcher := make(chan error, 1)
	if h.alive.Load() > 0 {
		launcher <- h.endLauncher()
	} else {
		go func() { launcher <- h.endLauncher() }()
	}
	var err error
	if keeper != nil {
		err = keeper.Close()
	}
	if tmp != nil {
		if rerr := tmp.remove(); err == nil && rerr != nil {
			err = fmt.Errorf("remove the private /tmp: %w", rerr)
		}
	}
	return errors.Join(<-launcher, err)
}

// endLauncher ends whatever still runs, and then gives the control groups back, which
// are empty only by then.
func (h *Host) endLauncher() error { return errors.Join(h.launcher.Close(), h.groups.close()) }
