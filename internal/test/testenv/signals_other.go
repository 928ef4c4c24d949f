// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testenv

// DefaultSignals does nothing here: no test sends the signals that it is about.
func DefaultSignals() {}
