// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package protect

import (
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// CheckNamed refuses grants that nobody here knows: what they would open is not
// known, and what they were asked for would fail in the middle.
func CheckNamed(names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(NamedGrants(), func(g NamedGrant) bool { return g.Name == name }) {
			return &sandbox.UnsupportedError{
				Need: fmt.Sprintf("the named grant %q", name), Have: "this version does not know it",
				Hint: "leave it out; sallyport doctor lists the names",
			}
		}
	}
	return nil
}
