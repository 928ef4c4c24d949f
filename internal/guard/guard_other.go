// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package guard

// A keeper is nothing here.
type keeper struct{}

// refuse says that there is nothing.
func (keeper) refuse() (*Hold, error) { return nil, ErrUnsupported }

// A hold is nothing here: nobody can get one.
type hold struct{}

// refuse says that there is nothing.
func (hold) refuse() ([]Found, error) { return nil, ErrUnsupported }

func (k *Keeper) hold([]Want) (*Hold, error) { return k.in.refuse() }

func (k *Keeper) quarantineNow(string, string) (Found, error) { return Found{}, ErrUnsupported }

func (k *Keeper) dropUnused() error { return nil }

func (k *Keeper) close() error { return nil }

func (h *Hold) placeholders() []Placeholder { return nil }

func (h *Hold) skipped() []Skip { return nil }

func (h *Hold) weaker() []string { return nil }

func (h *Hold) brokenCh() <-chan struct{} { return nil }

func (h *Hold) onBroken(func()) {}

func (h *Hold) cause() error { return nil }

func (h *Hold) finish() ([]Found, error) { return h.in.refuse() }

func (h *Hold) release() {}

func clean(string) (Report, error) { return Report{}, ErrUnsupported }
