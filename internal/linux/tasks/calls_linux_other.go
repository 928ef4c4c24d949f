// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !amd64 && !arm64

package tasks

// callOf does not know the numbers of this processor: every call can be a wait.
func callOf(int64) call { return callForeign }
