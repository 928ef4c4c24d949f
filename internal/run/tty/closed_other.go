// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package tty

// KeepClosed does nothing on this system: what is printed to a stream that is closed is lost.
func KeepClosed() {}
