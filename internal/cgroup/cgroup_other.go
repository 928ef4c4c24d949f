// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroup

import (
	"errors"
	"os"
)

// A Tree is what can be had: nothing, on this system.
type Tree struct{}

// Find returns a Tree in which nothing can be had.
func Find() *Tree { return new(Tree) }

// By returns no kind.
func (*Tree) By(Controller) Kind { return "" }

// Why says why there are no groups.
func (*Tree) Why() string { return "control groups are Linux's" }

// New fails.
func (*Tree) New(Limits) (*Group, error) {
	return nil, &Error{Path: "control groups", Err: errors.ErrUnsupported}
}

// Close does nothing.
func (*Tree) Close() error { return nil }

// A Group is never made on this system.
type Group struct{}

// AllowPIDs does nothing.
func (*Group) AllowPIDs(int) error { return nil }

// By returns no kind.
func (*Group) By(Controller) Kind { return "" }

// Folder returns nil.
func (*Group) Folder() *os.File { return nil }

// Lists returns nil.
func (*Group) Lists() []*os.File { return nil }

// Watch does nothing.
func (*Group) Watch(func()) {}

// Started does nothing.
func (*Group) Started() {}

// Read returns nothing known.
func (*Group) Read() Usage { return Usage{} }

// Unwatch does nothing.
func (*Group) Unwatch() {}

// Remove does nothing.
func (*Group) Remove() {}
