// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package dirs

import "github.com/sallyport-dev/sallyport/internal/linux/hostfacts"

// systemRoot reports whether this user is the system's root. To the root of a user namespace
// those above it are other users as well.
func systemRoot() bool { return hostfacts.SystemRoot() }
