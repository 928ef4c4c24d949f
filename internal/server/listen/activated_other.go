// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package listen

import (
	"errors"
	"net"
)

// activated is for systemd.
func activated() (net.Listener, error) {
	return nil, errors.New("fd:// is for services of systemd, which this system does not have")
}
