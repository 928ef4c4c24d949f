// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import "github.com/sallyport-dev/sallyport/sandbox"

// lacksBwrap says why the bwrap level cannot be had, or nil.
func (h *Host) lacksBwrap() *sandbox.UnsupportedError {
	return &sandbox.UnsupportedError{
		Need: "bubblewrap", Have: "this version does not use it",
		Hint: "use a machine with the native level",
	}
}
