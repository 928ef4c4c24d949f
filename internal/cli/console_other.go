// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cli

// ownTerminals says that commands of people in front of a terminal get one of their
// own; here only -t asks for it, and is told that there is none.
const ownTerminals = false
