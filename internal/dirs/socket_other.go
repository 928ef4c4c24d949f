// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package dirs

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// errSystem says why: the process at the other end is not known.
var errSystem = fmt.Errorf("a unix socket is not supported on this system: %w; use ws://IP:PORT or stdio",
	errors.ErrUnsupported)

// ListenSocket is not supported on this system.
func ListenSocket(string) (net.Listener, error) { return nil, errSystem }

// DialSocket is not supported on this system.
func DialSocket(context.Context, string, bool) (*net.UnixConn, error) { return nil, errSystem }

// SocketGone reports true: no process listens on this system.
func SocketGone(string) bool { return true }
