// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch reads and applies patches in the form that models write: "*** Begin Patch".
//
// [Parse] reads a text. [Make] computes everything that a patch would do and writes nothing. [Plan.Apply]
// does all of it or nothing, by a journal: the next one undoes what a killed process left half done.
//
// The package decides nothing about what may be written: [Options.Allow] says that, and no link leads
// elsewhere.
package patch
