// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package serve

import (
	"errors"
	"net"
)

// listenUnix is not supported: the process at the other end is not known.
func listenUnix(string) (net.Listener, error) {
	return nil, errors.New("a unix socket is not supported on this system; use ws://IP:PORT or stdio")
}

// alsoLines is not needed without unix sockets.
func (d *door) alsoLines(l net.Listener) net.Listener { return l }
