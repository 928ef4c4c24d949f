// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package main

// sparse is 1: every case runs.
const sparse = 1
