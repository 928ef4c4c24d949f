// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

const (
	placeTime = 30 * time.Second // until a name is looked up again for its places
	maxPlaces = 16 << 10         // addresses that are remembered
	lookAhead = 16               // names that are looked up at once
)

// A policyView says what must be seen of a connection. The zero policyView is of one that passes as a whole.
type policyView struct {
	some bool // TLS is opened, and requests without TLS are served one by one
	all  bool // nothing else passes
	hide bool // values of credentials are replaced in what comes back
}

func (s *policyView) add(o policyView) {
	s.some, s.all, s.hide = s.some || o.some, s.all || o.all, s.hide || o.hide
}

// view returns what must be seen of a connection: by the name of its host, and once it is made by its
// address, at which another name can be that of a host with request rules or credentials. Without these
// it costs nothing.
func (a *access) view(policy *network.Policy) (s policyView) {
	if a.own {
		return s
	}
	if policy.Inspects(a.req.Host, a.req.Port) {
		s = policyView{some: true, all: true}
	}
	if a.s.command.Rewriter == nil && !policy.HasRequestRules() {
		return s
	}
	s.add(a.s.viewOf(policy, a.req.Host, a.req.Port))
	if a.resolved.IsValid() {
		s.add(a.s.near(policy, a.resolved.Addr(), a.req.Port))
	}
	return s
}

// viewOf is view for the name of a host with request rules or credentials. Where TLS to all ports of a
// host is not to be opened, no value goes there, and so none comes from it.
func (s *Service) viewOf(policy *network.Policy, h network.Host, port uint16) policyView {
	var out policyView
	if policy.Ruled(h, port) {
		out = policyView{some: true, all: true}
	}
	if r := s.command.Rewriter; r != nil && r.Guards(h) && policy.Uninspected(h, 0) == nil {
		out.add(policyView{some: true, hide: true, all: r.Intercepts(h, port)})
	}
	return out
}

// watched reports whether a host has request rules or credentials, and may be reached.
func (s *Service) watched(policy *network.Policy, h network.Host) bool {
	d := policy.DecideName(h)
	return d.Ruling == network.Allow || d.Ruling == network.Ask
}

// near is view for an address: that of the hosts that have it.
func (s *Service) near(policy *network.Policy, addr netip.Addr, port uint16) policyView {
	names := policy.RuledNames()
	if r := s.command.Rewriter; r != nil {
		names = append(names, r.Names()...)
	}
	names = slices.DeleteFunc(names, func(h network.Host) bool {
		return !s.watched(policy, h) ||
			policy.Upstream(network.Request{Protocol: network.HTTPSConnect, Host: h, Port: port}) != nil
	})
	p := &s.proxy.places
	p.refresh(s, names)
	p.mu.Lock()
	defer p.mu.Unlock()
	out := s.viewOf(policy, network.AddrHost(addr), port)
	for h := range p.byAddr[addr.Unmap()] {
		out.add(s.viewOf(policy, h, port))
	}
	for _, h := range names {
		if p.unknown[h] || p.full { // it may be at this address, so what can be looked at is
			of := s.viewOf(policy, h, port)
			out.add(policyView{some: of.some, hide: of.hide})
		}
	}
	return out
}

// noteAddrs remembers the addresses of a host with request rules or credentials. Names that a wildcard
// matches are known only by this.
func (a *access) noteAddrs(policy *network.Policy, addrs []netip.Addr) {
	if a.s.command.Rewriter == nil && !policy.HasRequestRules() {
		return
	}
	if a.s.viewOf(policy, a.req.Host, a.req.Port) != (policyView{}) {
		a.s.proxy.places.note(a.req.Host, addrs)
	}
}

// places are the addresses that hosts with request rules or credentials have, or had: a name that many
// machines answer for has others each time.
type places struct {
	looking sync.Mutex // held while names are looked up

	mu      sync.Mutex // guards the rest
	byAddr  map[netip.Addr]map[network.Host]bool
	looked  map[network.Host]time.Time
	unknown map[network.Host]bool // could not be looked up
	full    bool                  // an address was not remembered
}

// note remembers addresses of a host.
func (p *places) note(h network.Host, addrs []netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byAddr == nil {
		p.byAddr = map[netip.Addr]map[network.Host]bool{}
	}
	for _, addr := range addrs {
		addr = addr.Unmap()
		hosts := p.byAddr[addr]
		switch {
		case hosts == nil && len(p.byAddr) >= maxPlaces, len(hosts) >= maxPlaces:
			p.full = true
		case hosts == nil:
			p.byAddr[addr] = map[network.Host]bool{h: true}
		default:
			hosts[h] = true
		}
	}
}

// refresh looks up those of the names that were not looked up for a while.
func (p *places) refresh(s *Service, names []network.Host) {
	p.looking.Lock()
	defer p.looking.Unlock()
	p.mu.Lock()
	names = slices.DeleteFunc(slices.Clone(names),
		func(h network.Host) bool { return time.Since(p.looked[h]) < placeTime })
	p.mu.Unlock()
	var group sync.WaitGroup
	slots := make(chan struct{}, lookAhead)
	for _, h := range names {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			addrs, err := s.resolve(h)
			p.note(h, addrs)
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.looked == nil {
				p.looked, p.unknown = map[network.Host]time.Time{}, map[network.Host]bool{}
			}
			var missing *net.DNSError
			p.looked[h] = time.Now()
			p.unknown[h] = err != nil && !errors.Is(err, errNoAddress) &&
				(!errors.As(err, &missing) || !missing.IsNotFound)
		})
	}
	group.Wait()
}
