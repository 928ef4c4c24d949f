// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package state

// Clean has nothing to clean: nothing is kept between runs on this system.
func Clean() []Report { return nil }
