// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package state

import "errors"

// Dir is an error: nothing is kept between runs on this system.
func Dir() (string, error) { return "", errors.ErrUnsupported }

// Existing returns nil: nothing is kept between runs on this system.
func Existing() []string { return nil }

// Clean has nothing to clean: nothing is kept between runs on this system.
func Clean() []Report { return nil }
