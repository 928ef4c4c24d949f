// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package programs knows which programs run which of their words.
//
// It is tables, and functions that look at nothing but the tables and the words of one command:
//
//   - launchers, families of commands and options, whose words are commands or scripts;
//   - interpreters, whose words are code in another language or files with code, and programs that
//     read files of a project without being told;
//   - environment variables that have programs run or load something;
//   - programs that run none of their words, and those that only read.
//
// A program is known by its base name. What is in no table may run its words, see [Open]. The package
// parses no script; internal/command/script does, and asks here.
package programs
