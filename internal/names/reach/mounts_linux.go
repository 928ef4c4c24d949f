// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// mountTable reads what is mounted where. Without the table no file has other paths.
func mountTable() table {
	text, _ := safefile.ReadSystem("/proc/self/mountinfo")
	return hostfacts.NewMountTable(hostfacts.ParseMounts(string(text)))
}

// kernelStarts returns the program that the kernel starts for another one.
func kernelStarts(path string) string { return hostfacts.Interpreter(path) }
