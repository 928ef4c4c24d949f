// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Sockets are those that a launch has made in the command's own network, from which no other command
// can be reached.
type Sockets struct {
	Proxy      net.Listener     // nil without a managed network: no name is found then
	Datagrams  net.PacketConn   // of SOCKS5; nil for none
	Redirected []net.Listener   // connections that are redirected; none where this machine cannot
	Routed     bool             // these were going to the addresses at which the listeners got them
	Names      []net.PacketConn // questions about names
	// Four and Six are TCP sockets that are not bound, with which published ports are reached.
	Four, Six []*os.File
	// Dial connects to a port of the loopback interface inside; nil for no way to it.
	Dial func(port uint16) (net.Conn, error)
}

// Close closes the sockets.
func (s *Sockets) Close() {
	if s.Proxy != nil {
		_ = s.Proxy.Close()
	}
	if s.Datagrams != nil {
		_ = s.Datagrams.Close()
	}
	for _, l := range s.Redirected {
		_ = l.Close()
	}
	for _, c := range s.Names {
		_ = c.Close()
	}
	for _, f := range slices.Concat(s.Four, s.Six) {
		_ = f.Close()
	}
}

// A Service serves one command. The nil Service serves none.
type Service struct {
	sockets  *Sockets
	services []*proxy.Service
	names    SyntheticNames
	naming   sync.WaitGroup
	begun    time.Time
	onDenied func(sandbox.Denial)
	onRecord func(network.Record)           // nil where nothing is recorded
	records  int                            // how many were told
	off      bool                           // there is no network, but for names
	policy   atomic.Pointer[network.Policy] // of now
	changing sync.Mutex                     // held while policy changes
	ignore   func()                         // further changes

	mu     sync.Mutex // guards services, while they are made, and report
	report Report
}

// A Report is what the proxy refused.
type Report struct {
	Network []executor.NetworkDenial  // at most executor.MaxNetworkDenials
	Denials []sandbox.Denial          // the same by address; what was refused first comes first
	Omitted int                       // refusals that are in neither
	Hosts   []executor.NetworkHost    // those that were reached: at most executor.MaxNetworkHosts
	Failed  []executor.NetworkFailure // those that were not: at most executor.MaxNetworkFailures
}

// Serve serves a command at its sockets, by what [Policy] returns, now and after each change. It
// returns at once; the Service owns the sockets.
func Serve(p *proxy.Proxy, sockets *Sockets, spec *executor.Spec) *Service {
	s := &Service{sockets: sockets, begun: time.Now(), onDenied: spec.OnDenied, onRecord: spec.OnRecord}
	if sockets.Proxy == nil {
		s.serveNames(spec)
		return s
	}
	command := &proxy.Command{CallID: spec.Run, Policy: s.policy.Load, Ask: spec.AskHost, Report: s.note}
	if sockets.Dial != nil {
		command.Inside = s.inside
	}
	if sockets.Datagrams != nil {
		command.PacketListener = (&datagrams{sockets.Datagrams, make(chan struct{}, 1)}).open
	}
	s.ignore = spec.Network.Watch(func() { s.update(spec) })
	s.update(spec) // after Watch, so that no change is missed
	if by, ok := s.policy.Load().Inspector().(proxy.Interceptor); ok {
		command.Rewriter = by.Rewriter()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.services = append(s.services, p.Serve(sockets.Proxy, command))
	s.names.Decide, s.names.Report = func(h network.Host) network.Decision { return s.policy.Load().DecideName(h) }, s.refusedName
	for _, l := range sockets.Redirected {
		s.services = append(s.services, p.ServeRedirected(l, command, s.origin))
	}
	for _, c := range sockets.Names {
		s.naming.Go(func() { s.names.Serve(c) })
	}
	return s
}

// inside connects to what the command serves itself. Where nothing listens the policy answers, so that it is
// said how to reach a service of this machine.
func (s *Service) inside(host network.Host, port uint16) (net.Conn, error) {
	if !isOwn(host) || slices.Contains(s.policy.Load().LocalPorts(), port) {
		return nil, nil // what connects to such a port inside is led to this machine
	}
	conn, err := s.sockets.Dial(port)
	if err != nil && !errors.Is(err, ErrBusy) {
		return nil, nil
	}
	return conn, err
}

// Count returns a Service that serves nothing: it counts what the proxy of another machine tells by Told.
func Count(spec *executor.Spec) *Service {
	return &Service{begun: time.Now(), onDenied: spec.OnDenied, onRecord: spec.OnRecord}
}

// Told takes a decision. The nil Service ignores it.
func (s *Service) Told(r *network.Record) {
	if s != nil {
		s.note(proxy.Event{
			Host: r.Host, Port: r.Port, Protocol: r.Protocol, Method: r.Method, Time: r.Time, Addrs: r.Addrs,
			Decision: network.Decision{Ruling: r.Decision, Reason: r.Reason, Source: r.Source},
		})
	}
}

// update makes the policy of now count: connections that it refuses end.
func (s *Service) update(spec *executor.Spec) {
	s.changing.Lock()
	policy, err := Policy(spec)
	if err != nil {
		policy = nil // more entries than it can have: nothing is open
	}
	s.policy.Store(policy)
	s.changing.Unlock()
	s.mu.Lock() // what is being served is served by it
	services := s.services
	s.mu.Unlock()
	for _, one := range services {
		one.Recheck()
	}
}

// serveNames answers the questions of a command without a network: no name is found, and an entry would
// open one in a managed network, unless one denies it. The policy is made when the first name is asked for,
// since most commands ask for none.
func (s *Service) serveNames(spec *executor.Spec) {
	s.off = true
	policy := sync.OnceValue(func() *network.Policy {
		p, _ := Policy(spec) // without one no entry denies
		return p
	})
	s.names.Decide = func(h network.Host) network.Decision {
		if d := policy().DecideName(h); d.Reason == network.Denied {
			return d
		}
		return network.Decision{Ruling: network.Deny, Reason: network.NotAllowed,
			Source: network.BaselinePolicy}
	}
	s.names.Report = s.refusedName
	for _, c := range s.sockets.Names {
		s.naming.Go(func() { s.names.Serve(c) })
	}
}

// origin says where a connection was going: to the name that its address stands for, or to the address.
func (s *Service) origin(conn net.Conn) (network.Host, uint16, error) {
	at, err := s.sockets.destination(conn)
	if err != nil {
		return network.Host{}, 0, err
	}
	if host, ok := s.names.Host(at.Addr()); ok {
		return host, at.Port(), nil
	}
	host := network.AddrHost(at.Addr())
	if !at.Addr().IsLoopback() || s.policy.Load().Decide(network.Request{Protocol: network.TransparentTCP,
		Host: host, Port: at.Port()}).Ruling == network.Allow {
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
	s.note(proxy.Event{Host: name, Protocol: network.DNS, Decision: d, Time: time.Now()})
}

// Close ends the connections of the command and returns what was refused. It can be called again.
func (s *Service) Close() Report {
	if s == nil {
		return Report{}
	}
	if s.ignore != nil {
		s.ignore()
	}
	if s.sockets != nil {
		s.sockets.Close()
	}
	for _, one := range s.services {
		_ = one.Close() // of a socket that is not used any more
	}
	s.naming.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

// note takes an event of the proxy.
func (s *Service) note(e proxy.Event) {
	d := e.Decision
	s.record(e)
	if e.Kind == proxy.Closed && e.Cause == proxy.DialFailed || e.Decision.Reason == network.DNSFailed {
		s.mu.Lock()
		s.report.failed(&e)
		s.mu.Unlock()
	}
	if e.Kind != proxy.Decided || d.Ruling == network.Allow || d.Reason == network.DNSFailed {
		return // no policy refuses a name that has no address
	}
	s.mu.Lock()
	first := s.count(e)
	s.mu.Unlock()
	if first != nil && s.onDenied != nil {
		s.onDenied(*first)
	}
}

// record tells an event, and counts what a host was reached for. The proxies of one command tell their
// events beside each other.
func (s *Service) record(e proxy.Event) {
	r := network.Record{
		Host: e.Host, Port: e.Port, Protocol: e.Protocol, Method: e.Method, Time: e.Time,
		Decision: e.Decision.Ruling, Reason: e.Decision.Reason, Source: e.Decision.Source,
		PolicyVersion: s.policy.Load().Version(), Addrs: e.Addrs,
	}
	if e.Decision.Entry != nil {
		r.Rule = e.Decision.Entry.Pattern
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == proxy.Closed {
		r.End = &network.End{Up: e.Up, Down: e.Down, MS: e.Duration.Milliseconds(), Cause: string(e.Cause)}
		if e.Resolved.IsValid() {
			r.End.Resolved = e.Resolved.String()
		}
		if e.Cause != proxy.DialFailed {
			s.report.reached(&r)
		}
	}
	if s.onRecord != nil && s.records < executor.MaxRecords {
		s.records++
		s.onRecord(r)
	}
}

// reached counts a connection that has ended.
func (r *Report) reached(c *network.Record) {
	i := slices.IndexFunc(r.Hosts, func(h executor.NetworkHost) bool {
		return h.Host == c.Host &&
			h.Port == c.Port
	})
	if i < 0 {
		if len(r.Hosts) == executor.MaxNetworkHosts {
			return
		}
		i = len(r.Hosts)
		r.Hosts = append(r.Hosts, executor.NetworkHost{Host: c.Host, Port: c.Port})
	}
	h := &r.Hosts[i]
	h.Connections++
	h.Up += c.End.Up
	h.Down += c.End.Down
}

// failed counts a host that the policy allows and that was not reached.
func (r *Report) failed(e *proxy.Event) {
	f := executor.NetworkFailure{Host: e.Host, Port: e.Port, Name: e.Decision.Reason == network.DNSFailed,
		Error: cmp.Or(e.Failure, "it has no address"), Count: 1}
	for i := range r.Failed {
		same := r.Failed[i]
		if same.Count = 1; same == f {
			r.Failed[i].Count++
			return
		}
	}
	if len(r.Failed) < executor.MaxNetworkFailures {
		r.Failed = append(r.Failed, f)
	}
}

// count counts a refusal. It returns the denial if it is the first one of its address.
func (s *Service) count(e proxy.Event) *sandbox.Denial {
	r := &s.report
	addr := net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
	if e.Protocol == network.DNS {
		addr = e.Host // it was not said what for
	}
	i := slices.IndexFunc(r.Network, func(n executor.NetworkDenial) bool {
		return n.Host == e.Host && n.Port == e.Port && n.Protocol == e.Protocol &&
			n.Reason == e.Decision.Reason
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
		Access: sandbox.Access{Op: sandbox.Connect, Addr: addr, Net: "tcp"}, Source: sandbox.Proxied,
		Rule: rule(e.Decision), Count: 1, Time: e.Time,
	}
	if s.off && e.Decision.Reason == network.NotAllowed {
		d.Rule = "network=" + sandbox.NetworkNone.String()
	}
	if host, err := network.ParseHost(pattern(e.Host)); err == nil {
		s.explain(&d, network.Request{Protocol: e.Protocol, Host: host, Port: e.Port}, e)
	}
	// The user is not asked about protected addresses and local names: they need an entry.
	// Nor is it asked again about what an answer has refused.
	d.NoGrant = d.Grant == "" || e.Decision.Reason != network.NotAllowed ||
		e.Decision.Source == network.Decider
	r.Denials = append(r.Denials, d)
	return &d
}

// explain says what opens the host of a refused request: the grant of a registry, of which tools need every
// host, or an entry. A name that the policy allows needs one for its address.
func (s *Service) explain(d *sandbox.Denial, r network.Request, e proxy.Event) {
	open := e.Decision.Pattern(r)
	addr, literal := r.Host.Addr()
	name := grants.RegistryOf(open)
	if s.sockets != nil && r.Port != 0 && open != "" && (r.Host.IsLocal() || literal && addr.IsLoopback()) {
		port := strconv.Itoa(int(r.Port))
		if open, d.Rule = "", grants.SilentRule+port; listening(r.Port) {
			d.Rule, name = grants.ServiceRule+port, grants.HostLoopbackPrefix+port
		}
	}
	if name != "" {
		d.Grant = sandbox.Grant{Name: name}.String()
		return
	}
	if len(e.Addrs) > 0 {
		d.Rule = r.Host.Name() + " has a private address (" + e.Addrs[0].String() + ")"
		if open = ""; s.sockets != nil { // else another machine judges addresses, whatever entries are here
			open = s.policy.Load().AddrPattern(r, e.Addrs)
		}
	}
	if open != "" {
		d.Grant = sandbox.Grant{Addr: open}.String()
	}
}
