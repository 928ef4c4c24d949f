// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package args

// terminals says that programs in front of a terminal get one of their own; here only -t
// asks for it, and is refused.
const terminals = false
