// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// transportTime is what a client has beyond its own time to decide about a host.
const transportTime = 5 * time.Second

// network gives a process the managed network that its client wants. Without a sandbox nothing would
// hold the process to it, which is refused.
func (p *process) network(spec *executor.Spec, w *wire.Start, ceiling *config.Config,
	holds *config.Effective) *wire.Error {
	n := w.Network
	if n == nil {
		return nil
	}
	if spec.Policy.Mode() != sandbox.Managed {
		return invalid("`networkProxy` needs a sandbox that confines: nothing would hold the process to the proxy")
	}
	c, err := hostConfig(n, p.session.server)
	if err == nil && holds != nil {
		err = boundHosts(ceiling, holds, &c)
	}
	var policy *network.Policy
	if err == nil {
		policy, err = network.New(c)
	}
	if over := new(config.CeilingError); errors.As(err, &over) {
		return barred(over)
	}
	if err != nil {
		return invalid("networkProxy: " + err.Error())
	}
	spec.Policy = spec.Policy.WithNetwork(sandbox.NetworkProxy)
	spec.Run, spec.Network = n.ExecutionID, network.NewLive(policy)
	spec.OnRecord = p.onRecord
	if n.DecisionTimeoutMs > 0 {
		most := min(time.Duration(min(n.DecisionTimeoutMs,
			uint64(answerTime.Milliseconds())))*time.Millisecond, answerTime)
		spec.AskHost = func(ctx context.Context, r network.Request) network.Decision {
			if holds != nil && holds.Permits([]string{access.HostRequired(r)}) != nil {
				return network.Decision{Ruling: network.Deny, Reason: network.NotAllowed,
					Source: network.Decider}
			}
			return p.askHost(ctx, r, most+transportTime)
		}
	}
	return nil
}

// hostConfig returns what the policy of a managed network is made from. Variables of this server, and none
// of the client, name the proxy by which hosts are reached.
func hostConfig(n *wire.NetworkProxy, s *Server) (network.Config, error) {
	c := network.Config{
		Mode: network.Full, Ask: n.DecisionTimeoutMs > 0, PublicSuffix: intercept.IsPublicSuffix,
		AllowPrivate: n.Proxy.AllowLocalBinding, IsHostAddr: access.IsHostAddr,
	}
	if n.Proxy.Mode == network.Limited.String() {
		c.Mode = network.Limited
	}
	if n.Proxy.AllowUpstream {
		var err error
		c.Upstream, err = network.ParseUpstream(network.UpstreamEnvironment,
			func(name string) string { v, _ := s.variable(name); return v })
		if err != nil {
			return c, err
		}
	}
	// A protocol that is not enabled has no entry that allows it, and one that denies it.
	var off []network.Protocol
	if !n.Proxy.SOCKS5 {
		off = append(off, network.SOCKS5TCP)
	}
	if !n.Proxy.SOCKS5 || !n.Proxy.SOCKS5UDP {
		off = append(off, network.SOCKS5UDP)
	}
	if len(off) > 0 {
		c.Entries = append(c.Entries, network.Entry{Pattern: "*", Deny: true, Protocols: off,
			Source: "networkProxy"})
	}
	for _, pattern := range slices.Sorted(maps.Keys(n.Proxy.Domains)) {
		c.Entries = append(c.Entries, network.Entry{Pattern: pattern,
			Deny: !wire.Allows(n.Proxy.Domains[pattern]), Source: "networkProxy"})
	}
	return c, nil
}

// protocol is the word for a protocol to a client. Those of the protocol know of no connections that
// were redirected.
func (c *connection) protocol(p network.Protocol) string {
	if p == network.TransparentTCP && !c.extends {
		p = network.SOCKS5TCP
	}
	return p.String()
}

// askHost asks the client about a host. All that is no answer denies.
func (p *process) askHost(ctx context.Context, r network.Request, most time.Duration) network.Decision {
	deny := network.Decision{Ruling: network.Deny, Reason: network.NotAllowed, Source: network.Decider}
	c := p.session.receiver()
	if c == nil {
		return deny
	}
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("it took longer than %v", most))
	defer cancel()
	m, err := c.ask(ctx, wire.MethodPolicyRequest, wire.PolicyRequest{
		ProcessID: p.id, Request: wire.HostRequest{Protocol: c.protocol(r.Protocol), Host: r.Host.String(),
			Port: r.Port},
	})
	if err != nil || m.Error != nil {
		return deny
	}
	w, err := wire.DecodePolicyAnswer(m.Result)
	switch {
	case err != nil:
		return deny
	case w.Reason == string(network.Denied): // an entry of the client
		deny.Reason = network.Denied
	}
	if w.Type != network.Allow.String() {
		return deny
	}
	return network.Decision{Ruling: network.Allow, Reason: network.Allowed, Source: network.Decider}
}

// maxAddresses bounds the addresses of a name that a client is told.
const maxAddresses = 8

// onRecord is [executor.Spec.OnRecord]: the client is told each decision.
func (p *process) onRecord(r network.Record) {
	c := p.session.receiver()
	if c == nil || r.End != nil || r.Protocol == network.DNS && !c.extends {
		return
	}
	d := wire.PolicyDecision{
		ProcessID: p.id, Timestamp: r.Time.UTC().Format("2006-01-02T15:04:05.000Z"), Scope: r.Scope(),
		Decision: "deny",
		Source:   string(r.Source), Reason: string(r.Reason), Protocol: c.protocol(r.Protocol),
		Host: r.Host, Port: r.Port,
		Method: "none", Client: "unknown", Override: r.Source == network.Decider,
	}
	if r.Decision == network.Allow {
		d.Decision = r.Decision.String()
	}
	if r.Method != "" {
		d.Method = r.Method
	}
	if c.extends {
		for _, addr := range r.Addrs[:min(len(r.Addrs), maxAddresses)] {
			d.Addresses = append(d.Addresses, addr.String())
		}
	}
	c.notify(wire.MethodPolicyDecision, &d)
}
