// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package explain

// asChecks is for tests on Linux.
func asChecks() bool { return false }
