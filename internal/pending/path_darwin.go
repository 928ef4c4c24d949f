// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import "path/filepath"

// path returns the name of a socket. A long one is an error of bind and connect.
func (r room) path(dir, name string) string { return filepath.Join(dir, socketsDir, name) }
