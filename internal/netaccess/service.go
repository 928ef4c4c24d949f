// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package netaccess

import (
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/netproxy"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Service serves one command. The nil Service serves none.
type Service struct {
	proxy    *netproxy.Service
	begun    time.Time
	onDenied func(sandbox.Denial)

	mu     sync.Mutex
	report Report
}

// A Report is what the proxy refused.
type Report struct {
	Network []executor.NetworkDenial // at most executor.MaxNetworkDenials
	Denials []sandbox.Denial         // the same by address; what was refused first comes first
	Omitted int                      // refusals that are in neither
}

// Serve serves a command at l, from which no other one can be reached, by a policy. It returns at
// once; the Service owns l.
func Serve(p *netproxy.Proxy, l net.Listener, spec *executor.Spec, policy *network.Policy) *Service {
	s := &Service{begun: time.Now(), onDenied: spec.OnDenied}
	s.proxy = p.Serve(l, &netproxy.Command{
		CallID: spec.Run,
		Policy: func() *network.Policy { return policy },
		Report: s.note,
	})
	return s
}

// Close ends the connections of the command and returns what was refused. It can be called again.
func (s *Service) Close() Report {
	if s == nil {
		return Report{}
	}
	_ = s.proxy.Close() // of a socket that is not used any more
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

// note takes an event of the proxy.
func (s *Service) note(e netproxy.Event) {
	d := e.Decision
	if e.Kind != netproxy.Decided || d.Ruling == network.Allow || d.Reason == network.DNSFailed {
		return // no policy refuses a name that has no address
	}
	s.mu.Lock()
	first := s.count(e)
	s.mu.Unlock()
	if first != nil && s.onDenied != nil {
		s.onDenied(*first)
	}
}

// count counts a refusal. It returns the denial if it is the first one of its address.
func (s *Service) count(e netproxy.Event) *sandbox.Denial {
	r := &s.report
	addr := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
	i := slices.IndexFunc(r.Network, func(n executor.NetworkDenial) bool {
		return n.Host == e.Host && n.Port == e.Port && n.Protocol == e.Protocol && n.Reason == e.Decision.Reason
	})
	switch {
	case i >= 0:
		r.Network[i].Count++
	case len(r.Network) == executor.MaxNetworkDenials:
		r.Omitted++
		return nil
	default:
		r.Network = append(r.Network, executor.NetworkDenial{
			Host: e.Host, Port: e.Port, Protocol: e.Protocol, Reason: e.Decision.Reason, Count: 1,
			FirstMS: max(e.Time.Sub(s.begun).Milliseconds(), 0),
		})
	}
	at := slices.IndexFunc(r.Denials, func(d sandbox.Denial) bool { return d.Addr == addr })
	if at >= 0 {
		r.Denials[at].Count++
		r.Denials[at].Time = e.Time
		return nil
	}
	d := sandbox.Denial{
		Access: sandbox.Access{Op: sandbox.Connect, Addr: addr, Net: "tcp"}, Source: sandbox.Proxied, Rule: rule(e.Decision), Count: 1, Time: e.Time,
	}
	if host, err := network.ParseHost(pattern(e.Host)); err == nil {
		if open := e.Decision.Pattern(network.Request{Host: host, Port: e.Port}); open != "" {
			d.Grant = sandbox.Grant{Addr: open}.String()
		}
	}
	// The user is not asked about protected addresses and local names: they need an entry.
	d.NoGrant = d.Grant == "" || e.Decision.Reason != network.NotAllowed
	r.Denials = append(r.Denials, d)
	return &d
}
