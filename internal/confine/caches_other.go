// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package confine

// StateFolders are none: nothing is kept between runs on this system.
func StateFolders() []string { return nil }
