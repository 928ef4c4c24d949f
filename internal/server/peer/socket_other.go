// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// errSystem says why: the process at the other end is not known.
var errSystem = fmt.Errorf("a unix socket is not supported on this system: %w; use ws://IP:PORT or stdio",
	errors.ErrUnsupported)

// Listen is not supported on this system.
func Listen(string) (net.Listener, error) { return nil, errSystem }

// Dial is not supported on this system.
func Dial(context.Context, string, bool) (*net.UnixConn, error) { return nil, errSystem }

// Gone reports true: no process listens on this system.
func Gone(string) bool { return true }
