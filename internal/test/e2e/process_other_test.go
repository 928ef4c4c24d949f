// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e

// PlayBenchmark returns: only Linux has benchmarks that measure programs.
func PlayBenchmark() {}
