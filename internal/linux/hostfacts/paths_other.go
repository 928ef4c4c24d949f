// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package hostfacts

// Direct does not find out here.
func Direct(string) (exists, direct bool) { return false, false }
