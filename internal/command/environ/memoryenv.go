// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"fmt"
	"slices"
	"strings"
)

// WithMemory returns the environment env, "K=V", with options by which Node and Java choose a heap
// that fits a limit on memory in bytes; 0 is no limit. Programs that ask for a control group do not see
// that of the command. Options that set a heap already stay as they are. It does not change env.
//
// Java says on standard error that it has read the variable. There is no quieter way, and a program
// that is killed at the limit says less.
func WithMemory(env []string, limit int64) []string {
	const mib = 1 << 20
	if limit < mib {
		return env
	}
	env = withOption(env, "NODE_OPTIONS", fmt.Sprintf("--max-old-space-size=%d", max(limit/4*3/mib, 1)),
		"--max-old-space-size", "--max_old_space_size", "--max-heap-size")
	return withOption(env, trustJavaOptions, fmt.Sprintf("-XX:MaxRAM=%d", limit),
		"-Xmx", "-XX:MaxRAM", "-XX:MaxHeapSize", "-XX:InitialRAMPercentage")
}

// withOption adds an option behind the others of a variable, unless there is one of the given ones.
func withOption(env []string, variable, option string, unless ...string) []string {
	out, options := make([]string, 0, len(env)+1), ""
	for _, entry := range env {
		value, ok := strings.CutPrefix(entry, variable+"=")
		switch {
		case !ok:
			out = append(out, entry)
		case slices.ContainsFunc(unless, func(o string) bool { return strings.Contains(value, o) }):
			return env
		case value != "":
			options = value + " "
		}
	}
	return append(out, variable+"="+options+option)
}
