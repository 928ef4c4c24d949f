// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func hostRequest(t *testing.T, p network.Protocol, name string) network.Request {
	t.Helper()
	host, port, err := network.ParseAuthority(name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return network.Request{Protocol: p, Host: host, Port: port}
}

// TestNetworkProxy: a process gets the network that its client wants, and none that cannot be enforced.
func TestNetworkProxy(t *testing.T) {
	config := wire.ProxyConfig{Enabled: true, SOCKS5: true, SOCKS5UDP: true, Mode: "full",
		Domains: map[string]string{"*.example": "allow", "b.example": "deny"}}
	with := func(change func(*wire.ProxyConfig)) wire.NetworkProxy {
		c := config
		change(&c)
		return wire.NetworkProxy{Proxy: c}
	}
	for _, test := range []struct {
		name     string
		w        wire.NetworkProxy
		protocol network.Protocol
		host     string
		want     string
	}{
		{"allowed", wire.NetworkProxy{Proxy: config}, network.HTTPSConnect, "a.example:443", "allow allowed"},
		{"denied", wire.NetworkProxy{Proxy: config}, network.HTTPSConnect, "b.example:443", "deny denied"},
		{"another host", wire.NetworkProxy{Proxy: config}, network.HTTPSConnect, "a.test:443", "deny not_allowed"},
		{"a client that decides", wire.NetworkProxy{Proxy: config, DecisionTimeoutMs: 1}, network.HTTPSConnect, "a.test:443", "ask not_allowed"},
		{"it is not asked what is denied", wire.NetworkProxy{Proxy: config, DecisionTimeoutMs: 1}, network.HTTPSConnect, "b.example:443", "deny denied"},
		{"limited", with(func(c *wire.ProxyConfig) { c.Mode = "limited" }), network.SOCKS5TCP, "a.example:22", "deny method_not_allowed"},
		{"no SOCKS", with(func(c *wire.ProxyConfig) { c.SOCKS5 = false }), network.SOCKS5TCP, "a.example:443", "deny denied"},
		{"no SOCKS, so no datagrams", with(func(c *wire.ProxyConfig) { c.SOCKS5 = false }), network.SOCKS5UDP, "a.example:443", "deny denied"},
		{"no SOCKS, but HTTP", with(func(c *wire.ProxyConfig) { c.SOCKS5 = false }), network.HTTP, "a.example:80", "allow allowed"},
		{"no datagrams", with(func(c *wire.ProxyConfig) { c.SOCKS5UDP = false }), network.SOCKS5UDP, "a.example:443", "deny denied"},
		{"no datagrams, but SOCKS", with(func(c *wire.ProxyConfig) { c.SOCKS5UDP = false }), network.SOCKS5TCP, "a.example:443", "allow allowed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := &executor.Spec{Policy: sandbox.ReadOnly()}
			if failure := (&process{session: &session{server: new(Server)}}).network(spec,
				&wire.Start{Network: &test.w}, nil, nil); failure != nil {
				t.Fatal(failure)
			}
			d := spec.Network.Policy().Decide(hostRequest(t, test.protocol, test.host))
			if got := d.Ruling.String() + " " + string(d.Reason); got != test.want ||
				spec.Policy.Network() != sandbox.NetworkProxy ||
				(spec.AskHost != nil) != (test.w.DecisionTimeoutMs > 0) {
				t.Errorf("%s, want %s; network %s", got, test.want, spec.Policy.Network())
			}
		})
	}
	for pattern, policy := range map[string]sandbox.Policy{"no-sandbox": sandbox.FullAccess(),
		"no pattern": sandbox.ReadOnly()} {
		w := wire.NetworkProxy{Proxy: wire.ProxyConfig{Domains: map[string]string{pattern: "allow"}}}
		if failure := (&process{session: &session{server: new(Server)}}).network(&executor.Spec{Policy: policy}, &wire.Start{Network: &w}, nil, nil); failure == nil || failure.Code != wire.CodeInvalidParams {
			t.Errorf("%s: %v", pattern, failure)
		}
	}
}

// TestPolicyRequest: only a whole answer in time allows.
func TestPolicyRequest(t *testing.T) {
	for _, test := range []struct {
		name, answer string
		extends      bool
		want         network.Decision
	}{
		{"allowed", `{"decision":{"type":"allow"}}`, false, network.Decision{Ruling: network.Allow, Reason: network.Allowed, Source: network.Decider}},
		{"an extension", `{"decision":{"type":"allow"}}`, true, network.Decision{Ruling: network.Allow, Reason: network.Allowed, Source: network.Decider}},
		{"denied", `{"decision":{"type":"deny","reason":"no"}}`, false, network.Decision{Reason: network.NotAllowed, Source: network.Decider}},
		{"denied by an entry", `{"decision":{"type":"deny","reason":"denied"}}`, false, network.Decision{Reason: network.Denied, Source: network.Decider}},
		{"ask is no permission", `{"decision":{"type":"ask","reason":"x"}}`, false, network.Decision{Reason: network.NotAllowed, Source: network.Decider}},
		{"malformed", `{"decision":"allow"}`, false, network.Decision{Reason: network.NotAllowed, Source: network.Decider}},
		{"an error", "", false, network.Decision{Reason: network.NotAllowed, Source: network.Decider}},
		{"no answer", "none", false, network.Decision{Reason: network.NotAllowed, Source: network.Decider}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, sent := asking(t)
				c.extends = test.extends
				p := &process{id: "p", session: &session{connection: c}}
				begun := time.Now()
				go func() {
					text := <-sent
					protocol := "socks5_tcp"
					if test.extends {
						protocol = "transparent_tcp"
					}
					if !strings.Contains(text, `"method":"network/policyRequest"`) ||
						!strings.Contains(text, `"params":{"processId":"p","request":{"protocol":"`+protocol+
							`","host":"a.example","port":22}}`) {
						t.Error(text)
					}
					switch m := (&wire.Message{ID: wire.Number(1),
						Result: json.RawMessage(test.answer)}); test.answer {
					case "none":
					case "":
						m.Kind, m.Error = wire.KindError, &wire.Error{Message: "x"}
						c.asked.end(m)
					default:
						m.Kind = wire.KindResponse
						c.asked.end(m)
					}
				}()
				d := p.askHost(t.Context(), hostRequest(t, network.TransparentTCP, "a.example:22"),
					7*time.Second)
				if d != test.want {
					t.Errorf("%+v, want %+v", d, test.want)
				}
				if took := time.Since(begun); test.answer == "none" && took != 7*time.Second {
					t.Errorf("it took %v", took)
				}
				c.cut()
				if d := p.askHost(t.Context(), hostRequest(t, network.HTTP, "a.example:80"),
					time.Second); d.Ruling != network.Deny {
					t.Errorf("after the end of the connection %+v", d)
				}
				p.session.connection = nil
				if d := p.askHost(t.Context(), hostRequest(t, network.HTTP, "a.example:80"),
					time.Second); d.Ruling != network.Deny {
					t.Errorf("without a connection %+v", d)
				}
			})
		})
	}
}
