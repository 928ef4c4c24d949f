// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import "slices"

// maxPorts bounds lists of ports: more are no list of services.
const maxPorts = 64

// A portList gathers the ports of rules. Rules for many ports are left out.
type portList []uint16

func (l *portList) add(rules ...rule) {
	for _, r := range rules {
		for port := uint32(r.first); r.last-r.first < maxPorts && port <= uint32(r.last); port++ {
			*l = append(*l, uint16(port))
		}
	}
}

// sorted returns each port once, in order.
func (l portList) sorted() []uint16 {
	slices.Sort(l)
	ports := slices.Compact([]uint16(l))
	return ports[:min(len(ports), maxPorts)]
}

// LocalWide reports whether an allow entry opens this machine's loopback interface, or a local name, at every
// port or at so many that LocalPorts leaves them out.
func (p *Policy) LocalWide() bool {
	if p.Mode() == None {
		return false
	}
	wide := func(r rule) bool { return r.last-r.first >= maxPorts }
	for name, n := range p.allow.names {
		if (Host{name: name}).IsLocal() &&
			(slices.ContainsFunc(n.exact, wide) || slices.ContainsFunc(n.below, wide)) {
			return true
		}
	}
	for prefix, rules := range p.allow.ranges {
		if prefix.Addr().IsLoopback() && slices.ContainsFunc(rules, wide) {
			return true
		}
	}
	return false
}

// LocalPorts returns the ports of this machine's loopback interface that allow entries open, in order.
// Entries for many ports are left out: a command's own services would be out of its reach.
func (p *Policy) LocalPorts() []uint16 {
	if p.Mode() == None {
		return nil
	}
	var ports portList
	for name, n := range p.allow.names {
		if (Host{name: name}).IsLocal() {
			ports.add(n.exact...)
			ports.add(n.below...)
		}
	}
	for prefix, rules := range p.allow.ranges {
		if prefix.Addr().IsLoopback() {
			ports.add(rules...)
		}
	}
	return ports.sorted()
}

// Ports returns the ports that allow entries name, of any host, in order. Entries for every port or for
// many are left out.
func (p *Policy) Ports() []uint16 {
	if p.Mode() == None {
		return nil
	}
	var ports portList
	for _, n := range p.allow.names {
		ports.add(n.exact...)
		ports.add(n.below...)
		for i := range n.inner {
			ports.add(n.inner[i].rule)
		}
	}
	for _, rules := range p.allow.ranges {
		ports.add(rules...)
	}
	ports.add(p.allow.all...)
	return ports.sorted()
}
