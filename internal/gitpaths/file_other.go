// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package gitpaths

// openFlags is empty: opening a file does not wait on this system.
const openFlags = 0
