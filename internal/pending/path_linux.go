// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import "fmt"

// path returns a name for a socket that fits into an address, however long that of dir is.
func (r room) path(_, name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", r.Fd(), name) }
