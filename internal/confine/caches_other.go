// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package confine

import "errors"

// StateFolders are none: nothing is kept between runs on this system.
func StateFolders() []string { return nil }

// StateFolder is an error: nothing is kept between runs on this system.
func StateFolder() (string, error) { return "", errors.ErrUnsupported }
