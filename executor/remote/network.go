// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/json"
	"net/netip"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// decideTime is how long the server waits for a decision: a person may be asked.
const decideTime = 5 * time.Minute

// networkOf returns the managed network of a process as the wire has it. The server opens no host by
// itself: it asks for each one, so that a policy that has changed counts, and no pattern is read twice.
// Nil is for a policy that opens nothing.
func networkOf(spec *executor.Spec, can wire.Capabilities) (*wire.NetworkProxy, error) {
	if !can.NetworkProxyLaunch {
		return nil, refuse("a managed network", "use a server that has the capability networkProxyLaunch")
	}
	mode := network.Full
	if spec.Network != nil {
		p := spec.Network.Policy()
		if mode = p.Mode(); mode == network.None {
			return nil, nil
		}
		if p.RequireSNI() {
			return nil, refuse("a network that requires server names", "leave out require_sni")
		}
	}
	return &wire.NetworkProxy{
		Proxy: wire.ProxyConfig{
			Enabled: true, SOCKS5: true, SOCKS5UDP: true, AllowUpstream: true, Mode: mode.String(),
			Domains: map[string]string{}, UnixSockets: map[string]string{},
		},
		ExecutionID: spec.Run, DecisionTimeoutMs: uint64(decideTime.Milliseconds()),
	}, nil
}

// hosts decides about the hosts of a process, and counts them.
type hosts struct {
	*access.Service
	spec executor.Spec // what concerns the network
}

// newHosts returns nil for a process without a managed network.
func newHosts(spec *executor.Spec) *hosts {
	if spec.Policy.Network() != sandbox.NetworkProxy {
		return nil
	}
	return &hosts{access.Count(spec), executor.Spec{Policy: spec.Policy, Network: spec.Network,
		AskHost: spec.AskHost}}
}

// decide is [execclient.Options.OnRequest]: the server asks about a host.
func (e *Executor) decide(ctx context.Context, method string, params json.RawMessage) (any, error) {
	if method != wire.MethodPolicyRequest {
		return nil, &wire.Error{Code: wire.CodeNoMethod, Message: "unknown method " + method}
	}
	q, err := wire.Decode[wire.PolicyRequest](params)
	if err != nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: err.Error()}
	}
	p := e.find(q.ProcessID)
	if p == nil || p.hosts == nil {
		return wire.PolicyAnswer{Decision: wire.PolicyWord{Type: "deny",
			Reason: "there is no such process"}}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	return wire.PolicyAnswer{Decision: p.hosts.decide(ctx, &q.Request)}, nil
}

// decide judges by the policy of now.
func (h *hosts) decide(ctx context.Context, q *wire.HostRequest) wire.PolicyWord {
	var r network.Request
	var err error
	if r.Host, err = network.ParseHost(q.Host); err == nil {
		err = r.Protocol.UnmarshalText([]byte(q.Protocol))
	}
	var policy *network.Policy
	if err == nil {
		policy, err = access.Policy(&h.spec)
	}
	if err != nil {
		return wire.PolicyWord{Type: "deny", Reason: err.Error()}
	}
	r.Port = q.Port
	d := policy.Decide(r)
	if (policy.Intercepts(r.Host, r.Port) || policy.Ruled(r.Host, r.Port)) &&
		(d.Ruling == network.Allow || d.Ruling == network.Ask) {
		// Requests would be seen here, and the server is on another machine.
		return wire.PolicyWord{Type: "deny", Reason: string(network.MITMRequired)}
	}
	if d.Ruling == network.Ask {
		d.Ruling = network.Deny
		if h.spec.AskHost != nil {
			d = h.spec.AskHost(ctx, r)
		}
	}
	if d.Ruling == network.Allow {
		return wire.PolicyWord{Type: "allow"}
	}
	return wire.PolicyWord{Type: "deny", Reason: string(d.Reason)}
}

// maxAddresses bounds the addresses of a name that are taken from a server.
const maxAddresses = 8

// told counts a decision of the server.
func (e *Executor) told(params json.RawMessage) {
	var d wire.PolicyDecision
	if json.Unmarshal(params, &d) != nil {
		return
	}
	p := e.find(d.ProcessID)
	if p == nil || p.hosts == nil {
		return
	}
	r := network.Record{Host: d.Host, Port: d.Port, Reason: network.Reason(d.Reason),
		Source: network.Source(d.Source)}
	if r.Protocol.UnmarshalText([]byte(d.Protocol)) != nil {
		return
	}
	if d.Method != "none" {
		r.Method = d.Method
	}
	if d.Decision == network.Allow.String() {
		r.Decision = network.Allow
	}
	for _, text := range d.Addresses[:min(len(d.Addresses), maxAddresses)] {
		if addr, err := netip.ParseAddr(text); err == nil {
			r.Addrs = append(r.Addrs, addr)
		}
	}
	r.Time = time.Now() // the clock of the server may be another one
	p.hosts.Told(&r)
}
