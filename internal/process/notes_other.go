// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

// notes is empty: this system tells nothing about the order of writes.
type notes struct{}

func (*notes) close() {}
