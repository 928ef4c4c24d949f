// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package durable keeps the output of commands, and what is known of their ends, in a directory that survives
// this process: a [Store] has a [Log] for each command. The next process with the directory finds the logs of
// the last one with [Store.Left].
//
// What is written is in the hands of the system and not synced: it survives the end of the process, and not
// that of the machine.
package durable
