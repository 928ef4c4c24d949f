// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package listen

import "net"

// alsoLines is not needed without unix sockets.
func (d *handler) alsoLines(l net.Listener) net.Listener { return l }
