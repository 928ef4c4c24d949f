// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syntax reads the two notations in which people write settings: flags of a command line, and TOML.
//
// [ParseFlags] reads flags by tables that help texts and completions read, too. [NearestWord] finds the
// known word that a misspelled one most likely stands for.
//
// [ParseTOML] reads a text as a flat list of keys and values with their places, and [AddTOML] adds lines to
// one without changing the others. The package knows no key.
package syntax
