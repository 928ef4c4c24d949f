// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// programs are what this test binary can be, by name.
func programs() map[string]func() {
	return map[string]func(){"sallyport": managed, "sallyport-sh": managed}
}

// endDaemon does nothing: there is no daemon.
func endDaemon(string) {}
