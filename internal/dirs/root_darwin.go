// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import "os"

// systemRoot reports whether this user is the system's root.
func systemRoot() bool { return os.Geteuid() == 0 }
