// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package windows starts commands on Windows, each in a job object of its own: no process of
// its tree can leave the job, and all of them end with it.
//
// Only full access is available. The package refuses every policy that confines a command
// with a *sandbox.UnsupportedError that names what Windows lacks for it.
package windows
