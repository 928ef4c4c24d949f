// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64 && !arm64

package inputwait

// callOf knows the numbers of no other processor: every call might be a wait.
func callOf(int64) call { return callForeign }
