// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package reach

import (
	"os"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// unchanged reports whether two looks at a file saw the same one, and no change between them that its
// time tells.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Mode() == b.Mode() && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func mayAccess(sandbox.Op, string) bool { return true }
