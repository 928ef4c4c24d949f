// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || (!amd64 && !arm64)

package rlimit

// files returns unknown limits.
func files() limit { return limit{} }
