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
//
// Shells are the programs that it knows best. [DetectShell] or [NamedShell] finds a [Shell] on a
// [ShellHost], and [Shell.Argv] turns a script into an argument vector. The machine is described by data and
// functions, so that tests can try the rules of every system anywhere. A shell that is not known is not
// replaced; the error lists the known ones. [SplitWord] and its like take one word of a shell script apart:
// quotes, escapes, expansions, braces and patterns of file names. They know no variable and no command.
//
// The package is pure: it starts nothing, reads no file and no environment.
package programs
