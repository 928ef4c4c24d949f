// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

// child is what this binary does as a process of its own.
func child(string) int { return 2 }
