// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

const (
	maxFlows    = 256              // hosts and ports of one association
	refusedTime = 30 * time.Second // until a host without a usable address is looked up again
	maxDatagram = 64 << 10
)

// An association is a UDP association: a socket that the client sends to, and one that sends on.
// It lasts as long as the connection on which it was asked for.
type association struct {
	c               *client
	inside, outside net.PacketConn
	last            atomic.Int64 // when a datagram passed, in Unix nanoseconds

	mu     sync.Mutex // guards the rest
	peer   net.Addr   // where the client sends from; the first one counts
	flows  map[udpTarget]*udpFlow
	byAddr map[netip.AddrPort]*udpFlow
}

type udpTarget struct {
	host network.Host
	port uint16
}

// An udpFlow is what is known of one host and port.
type udpFlow struct {
	a       *access
	to      netip.AddrPort // not valid: it was refused
	policy  *network.Policy
	used    time.Time
	refused time.Time
}

// associate serves the command UDP ASSOCIATE.
func (c *client) associate() {
	if c.s.command.PacketListener == nil {
		c.reply(replyUnsupported)
		return
	}
	inside, err := c.s.command.PacketListener()
	if err != nil || !c.s.hold(inside, nil) {
		c.reply(replyFailed)
		return
	}
	defer c.s.drop(inside)
	outside, err := c.s.proxy.listenUDP()
	if err != nil || !c.s.hold(outside, nil) {
		c.reply(replyFailed)
		return
	}
	defer c.s.drop(outside)
	bound, err := netip.ParseAddrPort(inside.LocalAddr().String())
	if err != nil || c.replyWith(replyOK, bound) != nil {
		return
	}
	u := &association{c: c, inside: inside, outside: outside, flows: map[udpTarget]*udpFlow{},
		byAddr: map[netip.AddrPort]*udpFlow{}}
	u.run()
}

func (p *Proxy) listenUDP() (net.PacketConn, error) {
	if p.ListenUDP != nil {
		return p.ListenUDP()
	}
	return net.ListenPacket("udp", ":0")
}

// run forwards datagrams until the connection of the client ends.
func (u *association) run() {
	u.last.Store(time.Now().UnixNano())
	ctx, cancel := context.WithCancel(u.c.s.ctx)
	var group sync.WaitGroup
	group.Go(func() { u.send(ctx) })
	group.Go(u.receive)
	u.await()
	cancel()
	_, _ = u.inside.Close(), u.outside.Close()
	group.Wait()
	for _, f := range u.flows {
		f.close()
	}
}

// await returns when the client has closed its connection, or no datagram passed for too long.
func (u *association) await() {
	for {
		u.c.within(tunnelTick)
		_, err := u.c.r.ReadByte()
		idle := time.Since(time.Unix(0, u.last.Load())) >= idleTime
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) && !idle {
			continue
		}
		return
	}
}

// send forwards what the client sends. A host that has to be looked up, or asked about, holds up
// the datagrams behind it.
func (u *association) send(ctx context.Context) {
	p := make([]byte, maxDatagram)
	for {
		n, from, err := u.inside.ReadFrom(p)
		if err != nil {
			return
		}
		u.mu.Lock()
		if u.peer == nil {
			u.peer = from
		}
		known := u.peer.String() == from.String()
		u.mu.Unlock()
		to, data, ok := parseDatagram(p[:n])
		if !known || !ok {
			continue
		}
		u.last.Store(time.Now().UnixNano())
		if f := u.flow(ctx, to); f != nil {
			if _, err := u.outside.WriteTo(data, net.UDPAddrFromAddrPort(f.to)); err == nil {
				u.mu.Lock()
				f.a.up += int64(len(data))
				u.mu.Unlock()
			}
		}
	}
}

// parseDatagram splits a datagram of a client. Fragments are not supported.
func parseDatagram(p []byte) (to socksTarget, data []byte, ok bool) {
	const head = 3 // reserved, fragment
	if len(p) < head || p[0] != 0 || p[1] != 0 || p[2] != 0 {
		return socksTarget{}, nil, false
	}
	r := bytes.NewReader(p[head:])
	to, err := readTarget(r)
	return to, p[len(p)-r.Len():], err == nil
}

// flow returns where a datagram may go; nil for nowhere. The policy of now is asked about each
// one. A name is looked up when it first comes.
func (u *association) flow(ctx context.Context, to socksTarget) *udpFlow {
	key := udpTarget{to.host, to.port}
	policy := u.c.s.policy()
	f := u.flows[key]
	if f != nil {
		switch {
		case f.to.IsValid() && f.passes(policy):
			f.used = time.Now()
			return f
		case !f.to.IsValid() && f.policy == policy && time.Since(f.refused) < refusedTime:
			return nil
		}
		u.remove(key, f)
	}
	f = &udpFlow{a: u.c.s.newAccess(network.SOCKS5UDP, ""), policy: policy, used: time.Now()}
	f.a.raw, f.a.req.Host, f.a.req.Port = to.raw, to.host, to.port
	if addrs, ok := f.a.permit("",
		func(r network.Request) network.Decision { return u.c.s.ask(ctx, r) }); ok {
		f.to = netip.AddrPortFrom(addrs[0].Unmap(), to.port)
		f.a.resolved = f.to
		if f.a.view(policy).all { // datagrams are not looked into
			f.a.closed(Ended)
			f.to, f.a = netip.AddrPort{}, &access{s: f.a.s, req: f.a.req, start: f.a.start}
			f.a.decide(network.Decision{Ruling: network.Deny, Reason: network.MITMRequired,
				Source: network.ModeGuard})
		}
	}
	f.refused = time.Now()
	u.add(key, f)
	if !f.to.IsValid() {
		return nil
	}
	return f
}

// passes reports whether the policy still lets datagrams through, to an address that may have become one of
// this machine's.
func (f *udpFlow) passes(policy *network.Policy) bool {
	if policy == f.policy {
		return f.a.check(f.to) == nil
	}
	d := policy.Decide(f.a.req)
	if d.Ruling != network.Allow && (d.Ruling != network.Ask || f.a.decision.Source != network.Decider) {
		return false
	}
	return f.a.check(f.to) == nil
}

// add remembers a flow, in the place of the one that was not used for longest if there are many.
func (u *association) add(key udpTarget, f *udpFlow) {
	if len(u.flows) >= maxFlows {
		var oldest udpTarget
		for k, g := range u.flows {
			if o := u.flows[oldest]; o == nil || g.used.Before(o.used) {
				oldest = k
			}
		}
		u.remove(oldest, u.flows[oldest])
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.flows[key] = f
	if f.to.IsValid() {
		u.byAddr[f.to] = f
	}
}

// remove forgets a flow and tells its end.
func (u *association) remove(key udpTarget, f *udpFlow) {
	u.mu.Lock()
	delete(u.flows, key)
	if u.byAddr[f.to] == f {
		delete(u.byAddr, f.to)
	}
	u.mu.Unlock()
	f.close()
}

// close tells the end of a flow.
func (f *udpFlow) close() {
	if f.to.IsValid() {
		f.a.closed(Ended)
	}
}

// receive forwards what comes from addresses that the client has sent to.
func (u *association) receive() {
	p := make([]byte, maxDatagram)
	for {
		n, from, err := u.outside.ReadFrom(p)
		if err != nil {
			return
		}
		addr, err := netip.ParseAddrPort(from.String())
		if err != nil {
			continue
		}
		addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
		u.mu.Lock()
		f, peer := u.byAddr[addr], u.peer
		if f != nil {
			f.a.down += int64(n)
		}
		u.mu.Unlock()
		if f == nil {
			continue
		}
		u.last.Store(time.Now().UnixNano())
		_, _ = u.inside.WriteTo(append(appendTarget([]byte{0, 0, 0}, addr), p[:n]...), peer)
	}
}
