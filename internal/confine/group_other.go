// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux && !darwin

package confine

import "github.com/sallyport-dev/sallyport/executor"

// members is empty: the processes of a group cannot be listed here.
func members(int) []executor.Survivor { return nil }
