// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package hub

// others are the rights of users that are not in the group of a file.
const others = 0o006
