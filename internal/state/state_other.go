// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package state

import "errors"

// Folders are none: nothing is kept between runs on this system.
func Folders() []string { return nil }

// Folder is an error: nothing is kept between runs on this system.
func Folder() (string, error) { return "", errors.ErrUnsupported }
