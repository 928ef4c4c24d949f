// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

func (k *Keeper) prepare() error {
	in := &k.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return ErrClosed
	}
	in.state = k.State
	if in.journal != nil {
		return nil
	}
	if err := in.lockJournal(); err != nil {
		return in.stateError(err)
	}
	in.unlockJournal()
	return nil
}
