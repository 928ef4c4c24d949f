// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package tasks

// Descendants is not known on this system.
func Descendants() []int { return nil }

// ReadsTerminal is not known on this system.
func ReadsTerminal([]int) bool { return false }
