// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

// Leftovers is a record of commands for who comes after this process. This system has none.
type Leftovers struct{}

// OpenLeftovers returns nil: nothing is recorded here.
func OpenLeftovers(string) (*Leftovers, error) { return nil, nil } //nolint:nilnil // as said

// Add records nothing.
func (*Leftovers) Add(int) (done func()) { return func() {} }

// Dir is empty.
func (*Leftovers) Dir() string { return "" }

// Close does nothing.
func (*Leftovers) Close() error { return nil }
