// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

// An Order tells nothing on this system: the order of output is that of the reads.
type Order struct{}

// Close does nothing.
func (*Order) Close() {}
