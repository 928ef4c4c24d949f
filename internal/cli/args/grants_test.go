// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/network"
)

// closed are hosts that no grant may open: this machine, what clouds tell machines about
// themselves, and hosts at which everybody can store data under a name of their own.
var closed = []string{
	"localhost:443", "localhost:80", "127.0.0.1:443", "[::1]:443", "10.0.0.1:443", "169.254.169.254:80",
	"169.254.169.254:443",
	"[fd00:ec2::254]:80", "metadata.google.internal:80", "metadata.google.internal:443",
	"storage.googleapis.com:443", "s3.amazonaws.com:443", "gist.github.com:443", "uploads.github.com:443",
	"raw.githubusercontent.com:443",
	"upload.pypi.org:443", "crates.io:443", "example.github.io:443", "example.org:443",
	"a.registry.npmjs.org:443",
}

// TestHostGrants: each host of a grant is a pattern of one name with one port, and opens this alone.
func TestHostGrants(t *testing.T) {
	for _, g := range grants.HostGrants() {
		t.Run(g.Name, func(t *testing.T) {
			c := network.Config{Mode: network.Full, PublicSuffix: intercept.IsPublicSuffix}
			for _, pattern := range g.Hosts {
				c.Entries = append(c.Entries, network.Entry{Pattern: pattern})
			}
			policy, err := network.New(c)
			if err != nil {
				t.Fatal(err)
			}
			decide := func(authority string) (network.Request, network.Decision) {
				host, port, err := network.ParseAuthority(authority, 0)
				if err != nil {
					t.Fatal(err)
				}
				r := network.Request{Protocol: network.HTTPSConnect, Host: host, Port: port}
				return r, policy.Decide(r)
			}
			for _, pattern := range g.Hosts {
				r, d := decide(pattern)
				if _, isAddr := r.Host.Addr(); d.Ruling != network.Allow || isAddr || r.Host.IsLocal() ||
					!strings.Contains(r.Host.Name(), ".") {
					t.Errorf("%s: %+v", pattern, d)
				}
				if r.Port == 22 || r.Port != 80 && r.Port != 443 {
					t.Errorf("%s: another port than those of HTTP", pattern)
				}
				// A server of names that answers with an address of this network opens nothing.
				for _, addr := range []string{"127.0.0.1", "169.254.169.254", "10.0.0.1", "::1"} {
					if open, d := policy.Vet(r,
						[]netip.Addr{netip.MustParseAddr(addr)}); d.Ruling == network.Allow || len(open) > 0 {
						t.Errorf("%s at %s: %v, %+v", pattern, addr, open, d)
					}
				}
				r.Port = 22
				if d := policy.Decide(r); d.Ruling == network.Allow {
					t.Errorf("%s opens port 22", pattern)
				}
			}
			for _, host := range closed {
				if _, d := decide(host); d.Ruling == network.Allow {
					t.Errorf("opens %s", host)
				}
			}
		})
	}
}

// TestHostGrantEntries: a grant is entries that name it, and denials win.
func TestHostGrantEntries(t *testing.T) {
	for _, tt := range []struct {
		name, user, managed string
		flags               []string
		host, text          string
	}{
		{"a flag", "", "", []string{"grants=net:npm"}, "registry.npmjs.org", "registry.npmjs.org:443: allowed\n  entry  registry.npmjs.org:443 (--flag net:npm)\n  mode   full\n"},
		{"a file", "grants = ['git', 'net:pypi']", "", nil, "files.pythonhosted.org", "config.toml:1:18 net:pypi)\n  mode   full\n"},
		{"a port of the loopback", "", "", []string{"grants=loopback:3000"}, "localhost:3000", "localhost:3000: allowed\n  entry  localhost:3000 (--flag loopback:3000)\n  mode   full\n"},
		{"its address", "", "", []string{"grants=loopback:3000"}, "127.1:3000", "127.0.0.1:3000: allowed\n"},
		{"its IPv6 address", "", "", []string{"grants=loopback:3000"}, "[::1]:3000", "[::1]:3000: allowed\n"},
		{"another port of the loopback", "", "", []string{"grants=loopback:3000"}, "localhost:3001", "localhost:3001: denied: it is local or private"},
		{"another address of the loopback", "", "", []string{"grants=loopback:3000"}, "127.0.0.2:3000", "denied: it is local or private"},
		{"a port that a flag denies", "", "", []string{"grants=loopback:3000", "network.deny=localhost"}, "localhost:3000", "denied: an entry denies it\n"},
		{"another port", "", "", []string{"grants=net:npm"}, "registry.npmjs.org:80", "denied: no entry allows it\n  mode   full\n  fix    allow with --allow-host registry.npmjs.org:80\n"},
		{"another host", "", "", []string{"grants=net:npm"}, "pypi.org", "denied: no entry allows it\n"},
		{"without it the fix is the host alone", "", "", nil, "registry.npmjs.org", "denied: the network is off\n  mode   none\n  fix    allow with --allow-host registry.npmjs.org:443\n"},
		{"a flag denies", "", "", []string{"grants=net:npm", "network.deny=**.npmjs.org"}, "registry.npmjs.org", "denied: an entry denies it\n  entry  **.npmjs.org (--flag)\n"},
		{"the managed configuration denies", "grants = ['net:npm']", "network.deny = ['registry.npmjs.org']", nil, "registry.npmjs.org", "denied: an entry denies it\n  entry  registry.npmjs.org ("},
		{"the network of the host", "", "", []string{"network.mode=host", "grants=net:npm"}, "a.b", "nothing is judged\n"},
		{"a mode in a file that closes it again", "grants = ['net:npm']", "", []string{"network.mode=none"}, "registry.npmjs.org", "denied: the network is off\n  mode   none\n  fix    allow with --net proxy\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := settings(t, tt.user, tt.managed, tt.flags...)
			if err != nil {
				t.Fatal(err)
			}
			a, err := Ask(e, nil, tt.host, "")
			if err != nil || !strings.Contains(a.String(), tt.text) {
				t.Errorf("%v, %v\nwant %s", a, err, tt.text)
			}
		})
	}
}

// TestHostGrantCeiling: a grant opens all of its hosts, or nothing. The ceilings on grants, on hosts
// and on the network each hold: a flag is refused, a file does not count, and no approval opens it.
func TestHostGrantCeiling(t *testing.T) {
	const grant = "net:pypi"
	hosts := grants.Hosts(grant)
	for _, tt := range []struct {
		name, managed string
		key           string // of the ceiling that refuses it; empty for none
	}{
		{"none", "", ""},
		{"something else", "level = 'bwrap'", ""},
		{"grants that have it", "grants = ['git', 'net:*']", ""},
		{"grants that do not", "grants = ['git', 'net:npm']", "grants"},
		{"no grants", "grants = []", "grants"},
		{"a mode, and no grants", "sandbox = 'workspace-write'", "grants"},
		{"a mode, and grants", "sandbox = 'workspace-write'\ngrants = ['net:*']", ""},
		{"hosts that have them", "network.allow = ['**.pypi.org:443', '*.pythonhosted.org']", ""},
		{"hosts that have one of them", "network.allow = ['pypi.org']", "network.allow"},
		{"hosts on another port", "network.allow = ['pypi.org:80', 'files.pythonhosted.org']", "network.allow"},
		{"no hosts", "network.allow = []", "network.allow"},
		{"grants, and no hosts", "grants = ['net:pypi']\nnetwork.allow = ['a.b']", "network.allow"},
		{"hosts, and no grants", "grants = ['git']\nnetwork.allow = ['*']", "grants"},
		{"no network", "network.mode = 'none'", "network.mode"},
		{"a limited network", "network.mode = 'limited'", ""},
		{"the network of the host", "network.mode = 'host'", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var over *config.CeilingError
			_, err := settings(t, "", tt.managed, "grants="+grant)
			refused := errors.As(err, &over)
			if refused != (tt.key != "") || err != nil && !refused || refused &&
				(over.Wish.Text != grant || over.Key != tt.key ||
					!strings.Contains(over.By.Place(), "managed.toml")) {
				t.Errorf("a flag: %v", err)
			}
			e, err := settings(t, "grants = ['"+grant+"']", tt.managed)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			if !refused {
				want = hosts
			}
			if got := e.Values["network.allow"].Texts(); !slices.Equal(got, want) {
				t.Errorf("a file: %q, want %q", got, want)
			}
			if mode := e.Values["network.mode"].Text(); (mode == config.NetNone) != refused {
				t.Errorf("a file: the mode %s", mode)
			}
			if (len(e.Notes) == 1) != refused || refused &&
				!strings.Contains(e.Notes[0], "config.toml:1:11: grants = net:pypi does not count") {
				t.Errorf("notes %q", e.Notes)
			}
			if err := e.Permits([]string{"grant:" + grant}); errors.As(err, &over) != refused {
				t.Errorf("an approval: %v", err)
			}
			for _, host := range hosts {
				a, err := Ask(e, nil, host, "")
				if err != nil || a.Allowed() == refused {
					t.Errorf("%s: %v, %v", host, a, err)
				}
			}
		})
	}
}

// TestHostGrantModes: which network a grant means.
func TestHostGrantModes(t *testing.T) {
	for _, tt := range []struct {
		name, user string
		flags      []string
		mode       string
		refused    bool // by CheckHosts
	}{
		{"a flag", "", []string{"grants=net:go"}, "full", false},
		{"a file", "grants = ['net:go']", nil, "full", false},
		{"another grant", "", []string{"grants=git"}, "none", false},
		{"limited in a file", "network.mode = 'limited'", []string{"grants=net:go"}, "limited", false},
		{"none in a file", "network.mode = 'none'", []string{"grants=net:go"}, "full", false},
		{"none beside it in a file", "grants = ['net:go']\nnetwork.mode = 'none'", nil, "none", false},
		{"host in a file", "network.mode = 'host'", []string{"grants=net:go"}, "host", false},
		{"the host", "", []string{"network.mode=host", "grants=net:go"}, "host", false},
		{"full access", "grants = ['net:go']", []string{"sandbox=full-access"}, "host", false},
		{"full access by a flag", "", []string{"sandbox=full-access", "grants=net:go"}, "host", false},
		{"a narrower mode than the file's", "grants = ['net:go']", []string{"sandbox=read-only"}, "none", false},
		{"none by a flag", "", []string{"network.mode=none", "grants=net:go"}, "none", true},
		{"a host and none by a flag", "", []string{"network.mode=none", "network.allow=a.b"}, "none", true},
		{"none by a flag, the grant in a file", "grants = ['net:go']", []string{"network.mode=none"}, "none", false},
		{"none by a flag, another grant", "", []string{"network.mode=none", "grants=git"}, "none", false},
		{"a denial and none by a flag", "", []string{"network.mode=none", "network.deny=a.b"}, "none", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := settings(t, tt.user, "", tt.flags...)
			if err != nil {
				t.Fatal(err)
			}
			if mode := e.Values["network.mode"].Text(); mode != tt.mode {
				t.Errorf("%s, want %s", mode, tt.mode)
			}
			bad := new(config.FlagError)
			if err := e.CheckHosts(); errors.As(err, &bad) != tt.refused || tt.refused &&
				!strings.Contains(bad.Text, "cannot be combined; use one of them") {
				t.Errorf("%v", err)
			}
		})
	}
}
