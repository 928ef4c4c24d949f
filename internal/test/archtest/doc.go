// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the tests of the module's walls: which package may import
// which, where third-party modules and system-dependent code live, and what every
// source file looks like.
//
// The rules are tables with one sentence of reason per line (table_test.go). The
// import graph comes from go list, once per operating system (graph_test.go); the
// sources are parsed, so that comments and strings cannot trip a check
// (source_test.go). Every rule has a test of its own that breaks it on purpose.
//
// The package refuses to let anything pass by being unknown: a package without a
// line in the table, and a waiver that is no longer needed, are findings.
package archtest
