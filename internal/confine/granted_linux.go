// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// grantedCaches returns what the named grants for caches are about.
func grantedCaches(names []string) []caches.Toolchain {
	var out []caches.Toolchain
	for _, name := range names {
		if t, ok := caches.Granted(name); ok {
			out = append(out, t)
		}
	}
	return out
}

// noCaches refuses caches that are asked for and turned off at once.
func noCaches(asked []caches.Toolchain) error {
	if len(asked) == 0 {
		return nil
	}
	return &sandbox.UnsupportedError{
		Need: "private layers over toolchain caches, for a grant that begins with " + caches.GrantPrefix,
		Have: "the command asks for none", Hint: "leave one of the two out",
	}
}
