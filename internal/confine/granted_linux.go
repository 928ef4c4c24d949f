// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"github.com/sallyport-dev/sallyport/internal/toolcache"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// grantedCaches returns what the named grants for caches are about.
func grantedCaches(names []string) []toolcache.Toolchain {
	var out []toolcache.Toolchain
	for _, name := range names {
		if t, ok := toolcache.Granted(name); ok {
			out = append(out, t)
		}
	}
	return out
}

// noCaches refuses caches that are asked for and turned off at once.
func noCaches(asked []toolcache.Toolchain) error {
	if len(asked) == 0 {
		return nil
	}
	return &sandbox.UnsupportedError{
		Need: "private layers over toolchain caches, for a grant that begins with " + toolcache.GrantPrefix,
		Have: "the command asks for none", Hint: "leave one of the two out",
	}
}
