// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// errNoAddress is the end of a look-up without a result.
var errNoAddress = errors.New("the name has no address")

// errNotVetted is what a dial gets whose address is not one that the policy lets through.
var errNotVetted = errors.New("netproxy: the address was not vetted")

// An access is one request for a host, from its decision to the end of its connection.
type access struct {
	s        *Service
	req      network.Request
	raw      string // the host as it arrived, where it was refused as malformed
	decision network.Decision
	answered bool         // allowed by an answer, and not by an entry
	addrs    []netip.Addr // that were vetted
	revoked  atomic.Bool
	blind    atomic.Bool            // requests in it are not seen
	own      bool                   // it leads to the command's own loopback interface
	opened   bool                   // its TLS is opened
	shut     bool                   // requests are not seen, and neither TLS nor a request may come in it
	via      *network.UpstreamProxy // by which the host is reached; nil for none
	shutAt   []netip.Addr           // the addresses of the name, where the policy closes all of them
	failure  string                 // why it has no address, or none that could be connected to
	start    time.Time
	resolved netip.AddrPort // not valid with via
	up, down int64
}

// newAccess begins a request.
func (s *Service) newAccess(p network.Protocol, method string) *access {
	return &access{s: s, req: network.Request{Protocol: p, Method: method}, start: time.Now()}
}

// policy returns the policy of now.
func (s *Service) policy() *network.Policy {
	if s.command.Policy == nil {
		return nil
	}
	return s.command.Policy()
}

// reject ends a request that is malformed.
func (a *access) reject(reason network.Reason, raw string) {
	a.raw = raw
	a.decide(network.Decision{Ruling: network.Reject, Reason: reason, Source: network.BaselinePolicy})
}

// decide notes the last word about a request, and tells it.
func (a *access) decide(d network.Decision) {
	a.decision = d
	a.s.report(a.event(Decided))
}

// An asker decides about a request for which the policy says Ask.
type asker func(network.Request) network.Decision

// reach takes a request as far as a connection, which ends with the Service. Nil means that there
// is none: because of the decision, or of the error if that allows. For bad see permit.
func (a *access) reach(bad network.Reason, ask asker) (net.Conn, error) {
	if conn, err := a.inside(bad); conn != nil || err != nil {
		return conn, err
	}
	addrs, ok := a.permit(bad, ask)
	if !ok {
		return nil, nil
	}
	a.addrs = addrs
	conn, err := a.open(addrs)
	if err != nil {
		a.failure = cause(err)
		a.closed(DialFailed)
		return nil, err
	}
	return conn, nil
}

// inside connects to what the command itself serves, where no entry opens the host, or denies it. Nil leaves
// the request to the policy.
func (a *access) inside(bad network.Reason) (net.Conn, error) {
	d := a.s.policy().Decide(a.req)
	if bad != "" || a.s.command.Inside == nil || a.loops() ||
		d.Reason != network.NotAllowedLocal && d.Reason != network.NotAllowed {
		return nil, nil
	}
	conn, err := a.s.command.Inside(a.req.Host, a.req.Port)
	if conn == nil || err != nil {
		return nil, err
	}
	a.own = true
	a.decide(network.Decision{Ruling: network.Allow, Reason: network.Allowed, Source: network.BaselinePolicy})
	if !a.s.hold(conn, a) {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// loops reports whether a connection inside would come back here: it was going to the loopback interface, and
// a listener of this proxy took it.
func (a *access) loops() bool {
	return a.s.origin != nil && a.req.Host.IsLocal()
}

// open connects to one of the addresses, or by an upstream proxy. The connection ends with the Service.
func (a *access) open(addrs []netip.Addr) (net.Conn, error) {
	if a.via != nil {
		return a.viaUpstream()
	}
	conn, to, err := a.dial(hop{addrs: addrs, port: a.req.Port, check: a.check})
	if err != nil {
		return nil, err
	}
	if a.resolved = to; !a.s.hold(conn, a) {
		return nil, net.ErrClosed
	}
	return conn, nil
}

// permit decides about a request and returns the addresses that may be dialed, none with an upstream
// proxy; ok is false if it was refused. What is malformed in it, other than its host, is the reason
// bad: it is refused as such only if its host is not refused anyway.
func (a *access) permit(bad network.Reason, ask asker) (addrs []netip.Addr, ok bool) {
	policy := a.s.policy()
	d := policy.Decide(a.req)
	switch {
	case d.Ruling != network.Allow && d.Ruling != network.Ask:
		a.decide(d)
		return nil, false
	case bad != "":
		a.reject(bad, "")
		return nil, false
	case d.Ruling == network.Ask:
		if d = ask(a.req); d.Ruling != network.Allow {
			a.decide(d)
			return nil, false
		}
		a.answered = true
	}
	addrs, vetted := a.vet(policy)
	if vetted.Ruling != network.Allow {
		a.decide(vetted)
		return nil, false
	}
	a.decide(d)
	return addrs, true
}

// vet resolves the host, once, and returns the addresses that may be dialed. With an upstream proxy that
// is its part, but for datagrams, which it does not forward.
func (a *access) vet(policy *network.Policy) ([]netip.Addr, network.Decision) {
	if a.via = policy.Upstream(a.req); a.via != nil && a.req.Protocol != network.SOCKS5UDP {
		return nil, network.Decision{Ruling: network.Allow}
	} else if a.via != nil {
		return nil, network.Decision{Ruling: network.Deny, Reason: network.DNSFailed,
			Source: network.BaselinePolicy}
	}
	addrs, err := a.s.resolve(a.req.Host)
	if err != nil {
		a.failure = cause(err)
		return nil, network.Decision{Ruling: network.Deny, Reason: network.DNSFailed,
			Source: network.BaselinePolicy}
	}
	a.noteAddrs(policy, addrs)
	fit, d := policy.Vet(a.req, addrs)
	if _, literal := a.req.Host.Addr(); d.Reason == network.NotAllowedLocal && !literal {
		a.shutAt = addrs
	}
	return fit, d
}

// cause says in a few words why a name has no address, or an address could not be connected to.
func cause(err error) string {
	var dns *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns) && dns.IsTimeout:
		return "no name server answered in time"
	case errors.As(err, &dns):
		return "the name server failed"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return err.Error()
}

// resolve returns the addresses of a host. The name is complete as it is: no search list of the
// system makes another one of it.
func (s *Service) resolve(h network.Host) ([]netip.Addr, error) { return s.lookUp(h, h.Name()+".") }

// lookUp is resolve for a name that may have a dot behind it.
func (s *Service) lookUp(h network.Host, name string) ([]netip.Addr, error) {
	if addr, ok := h.Addr(); ok {
		return []netip.Addr{addr}, nil
	}
	if local := h.LocalAddrs(); local != nil {
		return local, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, resolveTime)
	defer cancel()
	var resolver Resolver = net.DefaultResolver
	if s.proxy.Resolver != nil {
		resolver = s.proxy.Resolver
	}
	addrs, err := resolver.LookupNetIP(ctx, "ip", name)
	if err == nil && len(addrs) == 0 {
		err = errNoAddress
	}
	return addrs, err
}

// check vets the address of a connection that is about to be made, by the policy of now. It is
// a second wall: the addresses given to dial were vetted before.
func (a *access) check(to netip.AddrPort) error {
	if to.Port() != a.req.Port {
		return errNotVetted
	}
	if addrs, _ := a.s.policy().Vet(a.req, []netip.Addr{to.Addr()}); len(addrs) == 0 {
		return errNotVetted
	}
	return nil
}

// A hop is where a connection is to be made.
type hop struct {
	addrs []netip.Addr
	port  uint16
	check func(netip.AddrPort) error // vets the address once more
}

// dial connects to one of the addresses: the next one is tried when one fails, or beside it when it has not
// answered for a while. All tries have ended then. The race of [net.Dialer] is for a name that it
// resolves itself, which would not be the addresses that were vetted.
func (a *access) dial(to hop) (net.Conn, netip.AddrPort, error) {
	type result struct {
		conn net.Conn
		addr netip.Addr
		err  error
	}
	ctx, cancel := context.WithTimeout(a.s.ctx, dialTime)
	defer cancel()
	if len(to.addrs) == 1 {
		conn, err := a.connect(ctx, &to, to.addrs[0])
		return conn, netip.AddrPortFrom(to.addrs[0], to.port), err
	}
	left, results, pending := alternate(to.addrs), make(chan result), 0
	var won, failed result
	next := time.NewTimer(0)
	defer next.Stop()
	for pending > 0 || len(left) > 0 && won.conn == nil && ctx.Err() == nil {
		select {
		case <-next.C:
			if len(left) == 0 || won.conn != nil || ctx.Err() != nil {
				continue
			}
			addr := left[0]
			left = left[1:]
			pending++
			go func() {
				conn, err := a.connect(ctx, &to, addr)
				results <- result{conn, addr, err}
			}()
			next.Reset(nextTime)
		case got := <-results:
			pending--
			switch {
			case got.err == nil && won.conn == nil:
				won = got
				cancel()
			case got.err == nil:
				_ = got.conn.Close()
			default:
				failed = cmp.Or(failed, got) // the first one
				next.Reset(0)
			}
		}
	}
	if won.conn == nil {
		return nil, netip.AddrPort{}, cmp.Or(failed.err, ctx.Err())
	}
	return won.conn, netip.AddrPortFrom(won.addr, to.port), nil
}

// connect makes one connection.
func (a *access) connect(ctx context.Context, to *hop, addr netip.Addr) (net.Conn, error) {
	d := &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return errNotVetted
		}
		return to.check(at)
	}}
	at := netip.AddrPortFrom(addr, to.port)
	dial := func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
		return d.DialContext(ctx, network, address)
	}
	if a.s.proxy.Dial != nil {
		dial = a.s.proxy.Dial
	}
	conn, err := dial(ctx, d, "tcp", at.String())
	if err != nil {
		return nil, err
	}
	// Once more, before any byte: it may have become one of this machine's meanwhile.
	if err := to.check(netip.AddrPortFrom(addr.Unmap(), to.port)); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// stands reports whether the request would still be allowed. What an answer has allowed needs no
// entry, but no entry may deny it.
func (a *access) stands(p *network.Policy) bool {
	d := p.Decide(a.req)
	if a.own {
		return d.Reason != network.Denied
	}
	if d.Ruling != network.Allow && (d.Ruling != network.Ask || !a.answered) {
		return false
	}
	if a.blind.Load() && p.Inspects(a.req.Host, a.req.Port) {
		return false
	}
	if !a.resolved.IsValid() {
		return true
	}
	fit, _ := p.Vet(a.req, []netip.Addr{a.resolved.Addr()})
	return len(fit) > 0
}

// alternate orders addresses so that each family comes early, beginning with the first one.
func alternate(addrs []netip.Addr) []netip.Addr {
	var families [2][]netip.Addr
	for _, addr := range addrs {
		i := 0
		if addr = addr.Unmap(); addr.Is4() != addrs[0].Unmap().Is4() {
			i = 1
		}
		families[i] = append(families[i], addr)
	}
	out := make([]netip.Addr, 0, len(addrs))
	for i := range addrs {
		for _, family := range families {
			if i < len(family) {
				out = append(out, family[i])
			}
		}
	}
	return out
}

// event returns an event about the request.
func (a *access) event(kind Kind) Event {
	host := a.req.Host.String()
	if host == "" {
		const longest = 253
		host = strconv.QuoteToASCII(a.raw[:min(len(a.raw), longest)])
	}
	return Event{
		Kind: kind, Host: host, Port: a.req.Port, Protocol: a.req.Protocol, Method: a.req.Method,
		Decision: a.decision, Time: a.start, Addrs: a.shutAt, Failure: a.failure,
	}
}

// closed tells the end of the connection of a request.
func (a *access) closed(cause Cause) {
	switch {
	case a.revoked.Load():
		cause = Revoked
	case cause == Failed && a.s.ctx.Err() != nil:
		cause = Interrupted
	}
	e := a.event(Closed)
	e.Resolved, e.Up, e.Down, e.Cause = a.resolved, a.up, a.down, cause
	e.Duration = time.Since(a.start)
	a.s.report(e)
}

// host is the normalized host and port, for texts.
func (a *access) host() string {
	return net.JoinHostPort(a.req.Host.String(), fmt.Sprint(a.req.Port))
}
