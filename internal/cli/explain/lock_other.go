// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package explain

import "os"

// lock does nothing: no state is kept on this system.
func lock(*os.File) error { return nil }
