// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package peer

import "context"

// DaemonSocket returns [ErrUnsupported].
func DaemonSocket(func(string) string) (string, error) { return "", ErrUnsupported }

// StartDaemon returns [ErrUnsupported].
func StartDaemon(context.Context, []string, []string) (string, error) { return "", ErrUnsupported }
