// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import "slices"

// maxLocalPorts bounds LocalPorts: more are no list of services.
const maxLocalPorts = 64

// LocalPorts returns the ports of this machine's loopback interface that allow entries open, in order.
// Entries for many ports are left out: a command's own services would be out of its reach.
func (p *Policy) LocalPorts() []uint16 {
	if p.Mode() == None {
		return nil
	}
	var ports []uint16
	add := func(rules []rule) {
		for _, r := range rules {
			for port := uint32(r.first); r.last-r.first < maxLocalPorts && port <= uint32(r.last); port++ {
				ports = append(ports, uint16(port))
			}
		}
	}
	for name, n := range p.allow.names {
		if (Host{name: name}).IsLocal() {
			add(n.exact)
			add(n.below)
		}
	}
	for prefix, rules := range p.allow.ranges {
		if prefix.Addr().IsLoopback() {
			add(rules)
		}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	return ports[:min(len(ports), maxLocalPorts)]
}
