// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package access

import (
	"errors"
	"net"
	"net/netip"
)

// destination is for connections that were redirected, which only Linux does.
func (*Sockets) destination(net.Conn) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.ErrUnsupported
}
