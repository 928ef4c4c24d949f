// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux && !darwin

package process

import "github.com/sallyport-dev/sallyport/executor"

// members returns nothing: the processes of a group cannot be listed here.
func members(int) []executor.Survivor { return nil }
