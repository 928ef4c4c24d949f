// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

// ownTerminals says that commands of people in front of a terminal get one of their
// own.
const ownTerminals = true
