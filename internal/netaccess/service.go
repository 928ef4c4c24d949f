// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package netaccess

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/netproxy"
	"github.com/sallyport-dev/sallyport/internal/synthdns"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Sockets are those that a launch has made in the command's own network, from which no other command
// can be reached.
type Sockets struct {
	Proxy      net.Listener
	Redirected []net.Listener   // connections that are led away; none where this machine cannot
	Names      []net.PacketConn // questions about names
}

// Close closes the sockets.
func (s *Sockets) Close() {
	if s.Proxy != nil {
		_ = s.Proxy.Close()
	}
	for _, l := range s.Redirected {
		_ = l.Close()
	}
	for _, c := range s.Names {
		_ = c.Close()
	}
}

// A Service serves one command. The nil Service serves none.
type Service struct {
	sockets  *Sockets
	services []*netproxy.Service
	names    synthdns.Server
	naming   sync.WaitGroup
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

// Serve serves a command at its sockets, by a policy. It returns at once; the Service owns the sockets.
func Serve(p *netproxy.Proxy, sockets *Sockets, spec *executor.Spec, policy *network.Policy) *Service {
	s := &Service{sockets: sockets, begun: time.Now(), onDenied: spec.OnDenied}
	command := &netproxy.Command{
		CallID: spec.Run,
		Policy: func() *network.Policy { return policy },
		Report: s.note,
	}
	s.services = append(s.services, p.Serve(sockets.Proxy, command))
	s.names.Decide, s.names.Report = policy.DecideName, s.refusedName
	for _, l := range sockets.Redirected {
		s.services = append(s.services, p.ServeRedirected(l, command, func(c net.Conn) (network.Host, uint16, error) { return s.origin(c, policy) }))
	}
	for _, c := range sockets.Names {
		s.naming.Go(func() { s.names.Serve(c) })
	}
	return s
}

// origin says where a connection was going: to the name that its address stands for, or to the address.
func (s *Service) origin(conn net.Conn, policy *network.Policy) (network.Host, uint16, error) {
	at, err := destination(conn)
	if err != nil {
		return network.Host{}, 0, err
	}
	if host, ok := s.names.Host(at.Addr()); ok {
		return host, at.Port(), nil
	}
	host := network.AddrHost(at.Addr())
	if !at.Addr().IsLoopback() || policy.Decide(network.Request{Protocol: network.TransparentTCP, Host: host, Port: at.Port()}).Ruling == network.Allow {
		return host, at.Port(), nil
	}
	// Whether the client said localhost or its address cannot be known.
	host, err = network.ParseHost("localhost")
	return host, at.Port(), err
}

// refusedName notes a name that was asked for. Resolvers try a refused name again with the domains of
// their search list behind it, which is the same refusal.
func (s *Service) refusedName(host network.Host, d network.Decision) {
	name := host.String()
	s.mu.Lock()
	for _, n := range s.report.Network {
		if n.Protocol == network.DNS && strings.HasPrefix(name, n.Host+".") {
			name = n.Host
			break
		}
	}
	s.mu.Unlock()
	s.note(netproxy.Event{Host: name, Protocol: network.DNS, Decision: d, Time: time.Now()})
}

// Close ends the connections of the command and returns what was refused. It can be called again.
func (s *Service) Close() Report {
	if s == nil {
		return Report{}
	}
	s.sockets.Close()
	for _, one := range s.services {
		_ = one.Close() // of a socket that is not used any more
	}
	s.naming.Wait()
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
	if e.Protocol == network.DNS {
		addr = e.Host // it was not said what for
	}
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
		if open := e.Decision.Pattern(network.Request{Protocol: e.Protocol, Host: host, Port: e.Port}); open != "" {
			d.Grant = sandbox.Grant{Addr: open}.String()
		}
	}
	// The user is not asked about protected addresses and local names: they need an entry.
	d.NoGrant = d.Grant == "" || e.Decision.Reason != network.NotAllowed
	r.Denials = append(r.Denials, d)
	return &d
}
