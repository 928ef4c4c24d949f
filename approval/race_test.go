// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package approval

// slower is how much longer a test may take with the race detector.
const slower = 5
