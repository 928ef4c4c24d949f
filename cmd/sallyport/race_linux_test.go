// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package main

// sparse says that programs start slowly, and that one of so many cases is enough: the
// rest of them run without the race detector.
const sparse = 6
