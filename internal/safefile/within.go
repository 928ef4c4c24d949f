// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package safefile

import (
	"os"
	"strings"
)

// Within reports whether a path is dir or lies in it, by their components. Both are absolute
// and clean; the empty dir is the root. It looks at no file.
func Within(path, dir string) bool {
	if n := len(dir); n > 0 && os.IsPathSeparator(dir[n-1]) {
		dir = dir[:n-1]
	}
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]))
}
