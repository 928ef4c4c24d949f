// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package hub

// others are none: there are no such modes on this system.
const others = 0
