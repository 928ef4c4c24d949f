// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64

package observer

// sysRenameat is renameat(2) of the machines with the common table.
const sysRenameat = 38

// legacyLayouts is empty: these machines never had those calls.
var legacyLayouts [0]layout
