// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package otheros starts commands on macOS and on Windows.
//
// On macOS they run under Seatbelt profiles. On Windows each runs in a job object of its own: no
// process of its tree can leave the job, and all of them end with it; only full access is available
// there, and every policy that confines a command is refused with a *sandbox.UnsupportedError that
// names what Windows lacks for it.
package otheros
