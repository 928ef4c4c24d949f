// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// refusal is an event of the proxy.
func refusal(host string, port uint16, reason network.Reason) proxy.Event {
	return proxy.Event{Host: host, Port: port, Protocol: network.HTTPSConnect,
		Decision: network.Decision{Reason: reason}}
}

// opens returns a policy with one entry.
func opens(t *testing.T, pattern string) *network.Policy {
	t.Helper()
	p, err := network.New(network.Config{Mode: network.Full, Entries: []network.Entry{{Pattern: pattern}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDenials: each refusal has the flag that opens it, if one does, and a person is asked only
// about hosts that no entry names.
func TestDenials(t *testing.T) {
	denied := refusal("ads.example", 443, network.Denied)
	denied.Decision.Entry = &network.Entry{Pattern: "*.example", Deny: true, Source: "--deny-host"}
	allowed := refusal("ok.example", 443, network.Allowed)
	allowed.Decision.Ruling = network.Allow
	closed := refusal("x.example", 443, network.NotAllowed)
	closed.Kind = proxy.Closed
	name := refusal("sum.golang.org", 0, network.NotAllowed)
	name.Protocol = network.DNS
	private := refusal("reg.example", 443, network.NotAllowedLocal)
	private.Addrs = []netip.Addr{netip.MustParseAddr("10.99.0.7")}
	metadata := refusal("reg.example", 443, network.NotAllowedLocal)
	metadata.Addrs = []netip.Addr{netip.MustParseAddr("169.254.169.254")}
	for _, c := range []struct {
		name  string
		event proxy.Event
		none  bool
		grant string
		asks  bool
		rule  string
		addr  string
	}{
		{name: "a host", event: refusal("x.example", 443, network.NotAllowed), grant: "--allow-host x.example:443", asks: true, rule: "network=proxy", addr: "x.example:443"},
		{name: "an IPv6 address", event: refusal("2001:4860::1", 443, network.NotAllowed), grant: "--allow-host '[2001:4860::1]:443'", asks: true, rule: "network=proxy", addr: "[2001:4860::1]:443"},
		{name: "loopback, and nothing listens", event: refusal("127.0.0.1", 1, network.NotAllowedLocal),
			rule: "nothing listens at port 1", addr: "127.0.0.1:1"},
		{name: "localhost, and nothing listens", event: refusal("localhost", 1, network.NotAllowedLocal),
			rule: "nothing listens at port 1", addr: "localhost:1"},
		{name: "a registry", event: refusal("pypi.org", 443, network.NotAllowed),
			grant: "--grant net:pypi", asks: true, rule: "network=proxy", addr: "pypi.org:443"},
		{name: "a name of a registry", event: name,
			grant: "--grant net:go", asks: true, rule: "network=proxy", addr: "sum.golang.org"},
		{name: "a port that no registry has", event: refusal("pypi.org", 80, network.NotAllowed),
			grant: "--allow-host pypi.org:80", asks: true, rule: "network=proxy", addr: "pypi.org:80"},
		{name: "a host that takes uploads", event: refusal("github.com", 443, network.NotAllowed),
			grant: "--allow-host github.com:443", asks: true, rule: "network=proxy", addr: "github.com:443"},
		{name: "a private address", event: private,
			grant: "--allow-host 10.99.0.7:443", rule: "reg.example has a private address (10.99.0.7)", addr: "reg.example:443"},
		{name: "an address of cloud metadata", event: metadata,
			rule: "reg.example has a private address (169.254.169.254)", addr: "reg.example:443"},
		{name: "a name with a protected address", event: refusal("intra.example", 80, network.NotAllowedLocal), rule: "protected address", addr: "intra.example:80"},
		{name: "denied", event: denied, rule: "deny *.example (--deny-host)", addr: "ads.example:443"},
		{name: "a method", event: refusal("x.example", 80, network.MethodNotAllowed), rule: "network.mode=limited", addr: "x.example:80"},
		{name: "no host", event: refusal(`"a b"`, 0, network.InvalidHost), rule: "invalid_host", addr: `"a b":0`},
		{name: "no address", event: refusal("gone.example", 443, network.DNSFailed), none: true},
		{name: "allowed", event: allowed, none: true},
		{name: "closed", event: closed, none: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []sandbox.Denial
			s := &Service{onDenied: func(d sandbox.Denial) { told = append(told, d) }}
			s.policy.Store(opens(t, "reg.example"))
			s.sockets = new(Sockets)
			s.note(c.event)
			s.note(c.event)
			if c.none {
				if len(s.report.Network)+len(s.report.Denials)+len(told) > 0 {
					t.Errorf("%+v, told %v", s.report, told)
				}
				return
			}
			if len(s.report.Network) != 1 || len(s.report.Denials) != 1 || len(told) != 1 {
				t.Fatalf("%+v, told %v", s.report, told)
			}
			n, d := s.report.Network[0], s.report.Denials[0]
			if n.Host != c.event.Host || n.Port != c.event.Port || n.Reason != c.event.Decision.Reason ||
				n.Count != 2 {
				t.Errorf("%+v", n)
			}
			want := sandbox.Denial{
				Access: sandbox.Access{Op: sandbox.Connect, Addr: c.addr, Net: "tcp"},
				Source: sandbox.Proxied, Rule: c.rule, Grant: c.grant, NoGrant: !c.asks, Count: 2,
			}
			if diff := cmp.Diff(want, d); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTold: what the proxy of another machine tells has the same facts. Which addresses are open is judged
// there, so no entry for one is named.
func TestTold(t *testing.T) {
	s := Count(&executor.Spec{})
	s.Told(&network.Record{Host: "reg.example", Port: 443, Protocol: network.HTTPSConnect,
		Decision: network.Deny, Reason: network.NotAllowedLocal,
		Addrs: []netip.Addr{netip.MustParseAddr("10.99.0.7")}})
	if got := s.Close().Denials; len(got) != 1 || got[0].Grant != "" || !got[0].NoGrant ||
		got[0].Rule != "reg.example has a private address (10.99.0.7)" {
		t.Errorf("%+v", got)
	}
}

// TestDenialsBound: a command that asks for many hosts fills no memory, and what is left out is
// counted.
func TestDenialsBound(t *testing.T) {
	s := &Service{begun: time.Now()}
	for range 3 {
		for i := range 2 * executor.MaxNetworkDenials {
			s.note(refusal(fmt.Sprintf("h%d.example", i), 443, network.NotAllowed))
		}
	}
	r := s.report
	if len(r.Network) != executor.MaxNetworkDenials || len(r.Denials) != executor.MaxNetworkDenials ||
		r.Omitted != 3*executor.MaxNetworkDenials {
		t.Errorf("%d network denials, %d denials, %d omitted", len(r.Network), len(r.Denials), r.Omitted)
	}
	if slices.ContainsFunc(r.Network, func(n executor.NetworkDenial) bool { return n.Count != 3 }) {
		t.Errorf("%+v", r.Network)
	}
}

// TestRecords: a decision and the end of a connection are told, within a bound; hosts that were reached
// are counted, within a bound as well.
func TestRecords(t *testing.T) {
	var told []network.Record
	s := &Service{onRecord: func(r network.Record) { told = append(told, r) }}
	for i := range 2 * executor.MaxNetworkHosts {
		for range 3 {
			e := refusal(fmt.Sprintf("h%d.example", i), 443, network.Allowed)
			e.Decision.Ruling = network.Allow
			e.Decision.Entry = &network.Entry{Pattern: "*.example"}
			s.note(e)
			e.Kind, e.Up, e.Down, e.Duration, e.Cause = proxy.Closed, 1, 10, time.Second, proxy.Ended
			e.Resolved = netip.MustParseAddrPort("192.0.2.1:443")
			s.note(e)
		}
	}
	if len(told) != executor.MaxRecords || len(s.report.Hosts) != executor.MaxNetworkHosts {
		t.Fatalf("%d records, %d hosts", len(told), len(s.report.Hosts))
	}
	want := network.Record{Host: "h0.example", Port: 443, Protocol: network.HTTPSConnect,
		Decision: network.Allow, Reason: network.Allowed, Rule: "*.example"}
	if diff := cmp.Diff(want, told[0]); diff != "" {
		t.Error(diff)
	}
	want.End = &network.End{Resolved: "192.0.2.1:443", Up: 1, Down: 10, MS: 1000, Cause: "ended"}
	if diff := cmp.Diff(want, told[1]); diff != "" {
		t.Error(diff)
	}
	if h := s.report.Hosts[0]; h != (executor.NetworkHost{Host: "h0.example", Port: 443, Connections: 3,
		Up: 3, Down: 30}) {
		t.Errorf("%+v", h)
	}
}

// TestServe: a refusal that was answered is in the report of Close.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var p proxy.Proxy
	s := Serve(&p, &Sockets{Proxy: l}, &executor.Spec{Run: "r",
		Network: network.NewLive(policyOf(t, network.Full))})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "CONNECT refused.example:443 HTTP/1.1\r\nHost: refused.example:443\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("status %s", res.Status)
	}
	r := s.Close()
	if len(r.Network) != 1 || r.Network[0].Host != "refused.example" || r.Network[0].FirstMS < 0 {
		t.Errorf("%+v", r)
	}
	if again := s.Close(); len(again.Network) != 1 {
		t.Errorf("the second Close returned %+v", again)
	}
	if none := (*Service)(nil).Close(); len(none.Network) != 0 {
		t.Errorf("a nil Service has %+v", none)
	}
}
