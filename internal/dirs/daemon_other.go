// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package dirs

import "context"

// DaemonSocket returns [ErrNoDaemon].
func DaemonSocket(func(string) string) (string, error) { return "", ErrNoDaemon }

// StartDaemon returns [ErrNoDaemon].
func StartDaemon(context.Context, []string, []string) (string, error) { return "", ErrNoDaemon }
