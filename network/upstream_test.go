// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// TestParseUpstream: what is not the address of a proxy is refused, and no text has a password.
func TestParseUpstream(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"none", "none"},
		{"http://proxy:3128", "http://proxy:3128"},
		{"proxy:3128", "http://proxy:3128"},
		{"http://Proxy.Corp.", "http://proxy.corp:80"},
		{"https://proxy/", "https://proxy:443"},
		{"socks5h://[fd00::1]", "socks5h://[fd00::1]:1080"},
		{"socks5://127.0.0.1:9050", "socks5h://127.0.0.1:9050"},
		{"http://dev:s3cret@proxy:3128", "http://***@proxy:3128"},
		{"dev:s3cret@proxy:3128", "http://***@proxy:3128"},
		{"http://dev@proxy", "http://***@proxy:80"},
		{"socks5h://dev:s3%20cret@proxy", "socks5h://***@proxy:1080"},

		{"ftp://dev:s3cret@proxy", "its scheme"},
		{"socks4://dev:s3cret@proxy", "its scheme"},
		{"HTTPS://dev:s3cret@proxy:99999", "host or port"},
		{"http://dev:s3cret@proxy:0", "host or port"},
		{"http://dev:s3cret@", "host or port"},
		{"http://dev:s3cret@pro xy", "no URL"},
		{"http://dev:s3cret@proxy:port", "no URL"},
		{"http://dev:s3cret/@proxy", "no URL"},
		{"http://dev:s3cret@proxy/path", "more than a host and a port"},
		{"http://dev:s3cret@proxy?x", "more than a host and a port"},
		{"http://dev:s3cret@proxy#x", "more than a host and a port"},
		{"http://dev:s3cret%0d%0aX@proxy", "cannot be sent"},
		{"http://de%3av:s3cret@proxy", "cannot be sent"},
		{"http://:s3cret@proxy", "empty"},
		{"socks5h://s3cret@proxy", "needs a password"},
		{"http://dev:" + strings.Repeat("s3cret", 50) + "@proxy", "255 bytes"},
		{"http://a_s3cret%zz@proxy", "no URL"},
	} {
		t.Run(test.text, func(t *testing.T) {
			u, err := ParseUpstream(test.text, nil)
			got := u.String()
			if err != nil {
				got = err.Error()
				if bad := new(UpstreamError); !errors.As(err, &bad) || u != nil ||
					!strings.HasPrefix(got, "invalid upstream proxy: ") {
					t.Errorf("%v, %T", u, err)
				}
			}
			if (err == nil) != (got == test.want) || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			texts := got + MaskUpstream(test.text)
			for _, p := range u.Proxies() {
				texts += fmt.Sprintf("%v %+v %#v %s %q", p, p, p, p, p)
			}
			if strings.Contains(texts, "s3cret") {
				t.Errorf("the password is in %q", texts)
			}
		})
	}
}

// TestEnvironmentUpstream: which variables count.
func TestEnvironmentUpstream(t *testing.T) {
	for _, test := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"nothing", nil, "none"},
		{"only NO_PROXY", map[string]string{"NO_PROXY": "*"}, "none"},
		{"https", map[string]string{"HTTPS_PROXY": "http://a:1"}, "http://a:1 for all but plain HTTP"},
		{"http", map[string]string{"HTTP_PROXY": "http://a:1"}, "http://a:1 for plain HTTP"},
		{"both", map[string]string{"HTTP_PROXY": "http://a:1", "HTTPS_PROXY": "http://b:1"}, "http://a:1 for plain HTTP, http://b:1 for the rest"},
		{"both the same", map[string]string{"HTTP_PROXY": "http://a:1", "HTTPS_PROXY": "a:1"}, "http://a:1"},
		{"all", map[string]string{"ALL_PROXY": "socks5h://u:p@a"}, "socks5h://***@a:1080"},
		{"all and https", map[string]string{"ALL_PROXY": "socks5h://a", "https_proxy": "b"}, "socks5h://a:1080 for plain HTTP, http://b:80 for the rest"},
		{"lower case first", map[string]string{"HTTPS_PROXY": "bad://x", "https_proxy": "b", "http_proxy": "b"}, "http://b:80"},
		{"empty is not set", map[string]string{"https_proxy": "", "HTTPS_PROXY": "b"}, "http://b:80 for all but plain HTTP"},
		{"CGI", map[string]string{"REQUEST_METHOD": "GET", "HTTP_PROXY": "http://evil"}, "none"},
		{"CGI, lower case", map[string]string{"REQUEST_METHOD": "GET", "http_proxy": "a"}, "http://a:80 for plain HTTP"},
		{"malformed", map[string]string{"HTTPS_PROXY": "http://u:s3cret@a:x"}, "invalid upstream proxy in HTTPS_PROXY: it is no URL"},
		{"malformed, and not used", map[string]string{"all_proxy": "socks://x", "http_proxy": "a", "https_proxy": "a"}, "http://a:80"},
		{"malformed, and used", map[string]string{"all_proxy": "socks://s3cret", "http_proxy": "a"}, "invalid upstream proxy in all_proxy: its scheme"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, setting := range []string{"", UpstreamEnvironment} {
				u, err := ParseUpstream(setting, func(name string) string { return test.env[name] })
				got := u.String()
				if err != nil {
					got = err.Error()
				}
				if !strings.HasPrefix(got, test.want) || err == nil && got != test.want ||
					strings.Contains(got, "s3cret") {
					t.Errorf("%q, want %q", got, test.want)
				}
			}
			if u, _ := ParseUpstream(UpstreamNone, func(string) string { return "http://a:1" }); u != nil {
				t.Errorf("none is %v", u)
			}
		})
	}
}

// TestNoProxy: the hosts that are reached without the proxy of the environment, as Go and curl read them.
func TestNoProxy(t *testing.T) {
	for _, test := range []struct {
		list string
		via  string // hosts that are reached by the proxy
		not  string
	}{
		{"", "example.com:443 a.b:80 93.184.216.34:443 [2606:2800::1]:443", "localhost:80 x.localhost:80 127.0.0.1:80 [::1]:80 10.0.0.1:80 [fd00::1]:80 169.254.169.254:80 100.64.0.1:1 93.184.216.1:80 [64:ff9b::a00:1]:80"},
		{"*", "", "example.com:443 93.184.216.34:443"},
		{"example.com", "example.org:443 notexample.com:443 com:443", "example.com:443 a.example.com:443 a.b.example.com:80"},
		{".example.com", "example.com:443", "a.example.com:443"},
		{"*.example.com", "example.com:443", "a.example.com:443"},
		{"EXAMPLE.com", "", "example.com:443"},
		{"example.com:8443", "example.com:443", "example.com:8443 a.example.com:8443"},
		{"a.b, example.com ,x.y", "c.d:1", "a.b:443 example.com:443 x.y:443"},
		{"93.184.216.34", "93.184.216.35:443", "93.184.216.34:443"},
		{"93.184.216.34:80", "93.184.216.34:443", "93.184.216.34:80"},
		{"93.184.0.0/16", "93.185.0.1:443 example.com:443", "93.184.216.34:443"},
		{"2606:2800::/32", "[2606:2801::1]:443", "[2606:2800::1]:443"},
		{"[::1", "example.com:443", ""},
		{"bücher.example", "", "xn--bcher-kva.example:443"},
	} {
		t.Run(test.list, func(t *testing.T) {
			env := map[string]string{"ALL_PROXY": "http://proxy:3128", "NO_PROXY": test.list}
			u, err := ParseUpstream("", func(name string) string { return env[name] })
			if err != nil {
				t.Fatal(err)
			}
			p, err := New(Config{Mode: Full, Upstream: u,
				HostAddrs: []netip.Addr{netip.MustParseAddr("93.184.216.1")}})
			if err != nil {
				t.Fatal(err)
			}
			for want, hosts := range map[bool]string{true: test.via, false: test.not} {
				for _, text := range strings.Fields(hosts) {
					r := Request{Protocol: SOCKS5TCP}
					if r.Host, r.Port, err = ParseAuthority(text, 0); err != nil {
						t.Fatal(err)
					}
					if got := p.Upstream(r); (got != nil) != want {
						t.Errorf("%s: %v", text, got)
					}
				}
			}
		})
	}
}

// TestUpstreamByProtocol: plain HTTP has a proxy of its own, and policies that are made from one keep it.
func TestUpstreamByProtocol(t *testing.T) {
	env := map[string]string{"HTTP_PROXY": "http://web", "HTTPS_PROXY": "http://dev:pw@other"}
	u, err := ParseUpstream("", func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	first, err := New(Config{Mode: Full, Upstream: u})
	if err != nil {
		t.Fatal(err)
	}
	with, err := first.With(Entry{Pattern: "a.b"})
	if err != nil {
		t.Fatal(err)
	}
	amended, err := with.Amend(Entry{Pattern: "a.b", Deny: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []*Policy{first, with, amended} {
		for _, test := range []struct {
			protocol Protocol
			port     uint16
			want     string
		}{
			{HTTP, 80, "http://web:80"}, {HTTP, 8080, "http://web:80"}, {SOCKS5TCP, 80, "http://web:80"},
			{HTTPSConnect, 443, "http://***@other:80"}, {TransparentTCP, 22, "http://***@other:80"}, {SOCKS5TCP, 8080, "http://***@other:80"},
		} {
			if got := p.Upstream(Request{Protocol: test.protocol, Host: Host{name: "a.b"},
				Port: test.port}); got == nil || got.String() != test.want {
				t.Errorf("policy %d, %v: %v", i, test, got)
			}
		}
	}
	if got := (*Policy)(nil).Upstream(Request{Host: Host{name: "a.b"}, Port: 443}); got != nil {
		t.Errorf("no policy: %v", got)
	}
	if auth := u.other.Authorization(); auth != "Basic ZGV2OnB3" || u.web.Authorization() != "" {
		t.Errorf("%q", auth)
	}
}

// FuzzParseUpstream: what is read is a host and a port, and its text can be read again.
func FuzzParseUpstream(f *testing.F) {
	for _, s := range []string{"http://dev:pw@proxy:3128", "socks5h://[::1]", "none", "", "proxy",
		"http://%41:%00@x", "https://a/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseUpstream(text, func(string) string { return "" })
		if err != nil || u == nil {
			return
		}
		p := u.other
		if p.Port == 0 || p.Host == (Host{}) || strings.ContainsAny(p.Authority()+p.Authorization(),
			"\r\n ") == (p.Authorization() == "") {
			t.Fatalf("%q is %#v, %q", text, p, p.Authorization())
		}
		again, err := ParseUpstream(strings.Replace(p.String(), "***@", "", 1), nil)
		if err != nil || again.other.Host != p.Host || again.other.Port != p.Port ||
			again.other.Scheme != p.Scheme {
			t.Fatalf("%q: %v, %v", p, again, err)
		}
	})
}
