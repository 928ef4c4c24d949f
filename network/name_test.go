// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"strings"
	"testing"
)

// TestDecideName: a name may be asked for if some request for it may be allowed.
func TestDecideName(t *testing.T) {
	for _, c := range []struct {
		name, entries, host string
		ask                 bool
		want                Ruling
		reason              Reason
	}{
		{"allowed", "example.com", "example.com", false, Allow, Allowed},
		{"on one port", "example.com:8080", "example.com", false, Allow, Allowed},
		{"below", "*.example.com:443", "a.b.example.com", false, Allow, Allowed},
		{"by a label", "api-*.example.com:443", "api-x.example.com", false, Allow, Allowed},
		{"every name", "*", "example.org", false, Allow, Allowed},
		{"not named", "example.com", "example.org", false, Deny, NotAllowed},
		{"not named, asked about", "example.com", "example.org", true, Ask, NotAllowed},
		{"nothing", "", "example.org", false, Deny, NotAllowed},
		{"denied", "*.example.com !evil.example.com", "evil.example.com", true, Deny, Denied},
		{"denied on one port", "*.example.com !evil.example.com:22", "evil.example.com", false, Allow, Allowed},
		{"denied in all ports", "*.example.com !evil.example.com:1-65535", "evil.example.com", false, Deny, Denied},
		{"local", "*", "localhost", true, Deny, NotAllowedLocal},
		{"local, named", "localhost:3000", "localhost", false, Allow, Allowed},
		{"all denied", "example.com !*", "example.com", false, Deny, Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := Config{Mode: Full, Ask: c.ask, PublicSuffix: func(string) bool { return false }}
			for _, e := range strings.Fields(c.entries) {
				pattern, deny := strings.CutPrefix(e, "!")
				config.Entries = append(config.Entries, Entry{Pattern: pattern, Deny: deny, Broad: true})
			}
			p, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			h, err := ParseHost(c.host)
			if err != nil {
				t.Fatal(err)
			}
			if d := p.DecideName(h); d.Ruling != c.want || d.Reason != c.reason {
				t.Errorf("%v %s, want %v %s", d.Ruling, d.Reason, c.want, c.reason)
			}
		})
	}
	var none *Policy
	if d := none.DecideName(Host{name: "example.com"}); d.Ruling != Deny || d.Reason != ProxyDisabled {
		t.Errorf("no policy: %v %s", d.Ruling, d.Reason)
	}
}

// TestPorts: ports that entries name count, whatever is before them; those for all or many ports do not.
func TestPorts(t *testing.T) {
	for entries, want := range map[string]string{
		"example.com:443 10.0.0.1:80 localhost":                                "[80 443]",
		"**.a.example:81 *.b.example:82 api-*.c.example:83 10.0.0.0/8:84 *:85": "[81 82 83 84 85]",
		"a.example:8000-8002 b.example:8002 c.example:1-65535 d.example":       "[8000 8001 8002]",
		"a.example:443 !b.example:22":                                          "[443]",
		"":                                                                     "[]",
	} {
		p, err := New(Config{Mode: Full, Entries: entriesOf(entries)})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.Ports()); got != want {
			t.Errorf("%s: %s, want %s", entries, got, want)
		}
	}
	var none *Policy
	if ports := none.Ports(); ports != nil {
		t.Errorf("no policy: %v", ports)
	}
}

// entriesOf reads patterns, each with an exclamation mark before it to deny.
func entriesOf(text string) (list []Entry) {
	for _, e := range strings.Fields(text) {
		pattern, deny := strings.CutPrefix(e, "!")
		list = append(list, Entry{Pattern: pattern, Deny: deny, Broad: true})
	}
	return list
}

// TestLocalPorts: only entries for a few ports of the loopback interface count.
func TestLocalPorts(t *testing.T) {
	for entries, want := range map[string]string{
		"localhost:3000 127.0.0.1:8080 [::1]:9000-9001": "[3000 8080 9000 9001]",
		"example.com:443 10.0.0.1:80 localhost":         "[]",
		"*.localhost:5173 127.0.0.0/8:5432":             "[5173 5432]",
		"localhost:1-65535 localhost:3000":              "[3000]",
		"example.com:80 !localhost:22":                  "[]",
	} {
		p, err := New(Config{Mode: Full, Entries: entriesOf(entries)})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.LocalPorts()); got != want {
			t.Errorf("%s: %s, want %s", entries, got, want)
		}
	}
}
