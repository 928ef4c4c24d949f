// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitstate knows what git writes in a git directory, name by name, and whether a value
// has the form in which git writes it there.
//
// [LookUp] says what a name may be. What it does not know is not git's. [ParseConfig] reads the
// language of git's configurations. The package reads texts as git does, byte for byte, and no
// files.
package gitstate
