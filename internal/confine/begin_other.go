// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package confine

import "github.com/sallyport-dev/sallyport/sandbox"

// ThreadsLast does nothing: nothing depends on threads here.
func ThreadsLast() {}

// Begin does nothing: here a launch needs nothing that takes time.
func (h *Host) Begin(sandbox.Policy) {}
