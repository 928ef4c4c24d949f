// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package hostfacts

import "errors"

// Lookup is not supported on this system: which file a name means is not known.
func Lookup(string, string, []string) (string, error) { return "", errors.ErrUnsupported }

// Repository does not find out here.
func Repository(string) string { return "" }
