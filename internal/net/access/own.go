// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"os"
	"slices"

	"github.com/sallyport-dev/sallyport/network"
)

// OwnHosts are the names and addresses by which a command with a network of its own reaches itself: those of
// the loopback interface, and the name of this machine.
func OwnHosts() []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	name, err := os.Hostname()
	if err != nil {
		return hosts
	}
	if host, err := network.ParseHost(name); err == nil && host.Name() != "" && !host.IsLocal() {
		hosts = append(hosts, host.Name())
	}
	return hosts
}

// isOwn reports whether a host leads a command with a network of its own to itself.
func isOwn(h network.Host) bool {
	if addr, ok := h.Addr(); ok {
		return addr.IsLoopback() || addr.IsUnspecified() || IsHostAddr(addr)
	}
	return h.IsLocal() || slices.Contains(OwnHosts(), h.Name())
}
