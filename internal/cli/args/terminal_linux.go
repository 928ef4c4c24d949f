// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

// terminals says that programs in front of a terminal get one of their own.
const terminals = true
