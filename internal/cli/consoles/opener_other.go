// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !darwin && !windows

package consoles

// opener is the program that opens a file in the browser of the user, with its arguments.
var opener = []string{"xdg-open"}
