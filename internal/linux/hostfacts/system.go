// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import "runtime"

// System is the operating system of this machine, as GOOS names it.
const System = runtime.GOOS
