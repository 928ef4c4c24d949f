// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package daemon

import "context"

// Socket returns [ErrUnsupported].
func Socket(func(string) string) (string, error) { return "", ErrUnsupported }

// Start returns [ErrUnsupported].
func Start(context.Context, []string, []string) (string, error) { return "", ErrUnsupported }
