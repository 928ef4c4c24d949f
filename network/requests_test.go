// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
)

// TestRequestRules: requests to a host that a rule names pass only if one of them matches.
func TestRequestRules(t *testing.T) {
	p, err := New(Config{Mode: Full, Rules: []RequestRule{
		{Name: "read", Hosts: []string{"api.example.com"}, Methods: []string{"GET"}, Paths: []string{"/repos/me", "/users/"}},
		{Name: "issue", Hosts: []string{"*.example.com:443"}, Methods: []string{"POST"}, Paths: []string{"/issues"},
			Query:   []Pair{{"state", "open"}, {"page", "pattern:1*"}},
			Headers: []Pair{{"Accept", "literal:pattern:x"}}},
		{Name: "all", Hosts: []string{"all.example.com"}},
		{Name: "root", Hosts: []string{"root.example.com"}, Paths: []string{"/"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	accepts := http.Header{"Accept": {"pattern:x"}}
	for _, tt := range []struct {
		name, host, method, target string
		header                     http.Header
		rule                       string // empty for refused, "-" for no rule about the host
	}{
		{"a path", "api.example.com", "GET", "/repos/me", nil, "read"},
		{"below it", "api.example.com", "GET", "/repos/me/x?y=z", nil, "read"},
		{"escapes that say nothing", "api.example.com", "GET", "/repo%73/m%65/a%20b", nil, "read"},
		{"a path with a slash", "api.example.com", "GET", "/users/", nil, "read"},
		{"below one with a slash", "api.example.com", "GET", "/users/1", nil, "read"},
		{"one without it", "api.example.com", "GET", "/users", nil, ""},
		{"a longer name", "api.example.com", "GET", "/repos/menu", nil, ""},
		{"capitals", "api.example.com", "GET", "/Repos/me", nil, ""},
		{"above it", "api.example.com", "GET", "/repos/me/../you", nil, ""},
		{"above it at the end", "api.example.com", "GET", "/repos/me/..", nil, ""},
		{"above it, escaped", "api.example.com", "GET", "/repos/me/%2e%2E/you", nil, ""},
		{"above it by a parameter", "api.example.com", "GET", "/repos/me/..;x/you", nil, ""},
		{"an escaped slash in a name", "api.example.com", "GET", "/repos/me%2fx", nil, ""},
		{"an escaped slash", "api.example.com", "GET", "/repos/me/..%2fyou", nil, ""},
		{"escaped twice", "api.example.com", "GET", "/repos/me/%252e%252e/you", nil, ""},
		{"a backslash", "api.example.com", "GET", `/repos/me/..\you`, nil, ""},
		{"two slashes", "api.example.com", "GET", "//repos/me", nil, ""},
		{"two slashes inside", "api.example.com", "GET", "/repos//me", nil, ""},
		{"a broken escape", "api.example.com", "GET", "/repos/me/%zz", nil, ""},
		{"a control character", "api.example.com", "GET", "/repos/me/%00", nil, ""},
		{"no path", "api.example.com", "GET", "*", nil, ""},
		{"another method", "api.example.com", "HEAD", "/repos/me", nil, ""},
		{"a method in small letters", "api.example.com", "get", "/repos/me", nil, ""},
		{"a method that a header replaces", "api.example.com", "GET", "/repos/me", http.Header{"X-Http-Method-Override": {"DELETE"}}, ""},
		{"the same method in a header", "api.example.com", "GET", "/repos/me", http.Header{"X-Method-Override": {"get"}}, "read"},
		{"the second rule", "api.example.com", "POST", "/issues?page=12&state=open", accepts, "issue"},
		{"a value too many", "api.example.com", "POST", "/issues?page=12&state=open&state=all", accepts, ""},
		{"no value", "api.example.com", "POST", "/issues?page=12", accepts, ""},
		{"a value that does not match", "api.example.com", "POST", "/issues?page=2&state=open", accepts, ""},
		{"a query that is broken", "api.example.com", "POST", "/issues?page=12&state=open;x", accepts, ""},
		{"no header", "api.example.com", "POST", "/issues?page=12&state=open", nil, ""},
		{"a header too many", "api.example.com", "POST", "/issues?page=12&state=open", http.Header{"Accept": {"pattern:x", "y"}}, ""},
		{"a host of the pattern", "b.example.com", "POST", "/issues?page=1&state=open", accepts, "issue"},
		{"everything", "all.example.com", "DELETE", "//x/../y", nil, "all"},
		{"every path", "root.example.com", "GET", "/x", nil, "root"},
		{"a host without rules", "example.com", "DELETE", "/x", nil, "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := HTTPRequest{Method: tt.method, Target: tt.target, Header: tt.header}
			d, rule := p.DecideRequest(mustHost(t, tt.host), 443, q)
			got := "-"
			if rule != nil {
				got = rule.Name
			}
			if d.Ruling != Allow {
				got = ""
				if d.Reason != MITMHookDenied || d.Entry == nil || rule != nil {
					t.Errorf("%+v", d)
				}
			}
			if got != tt.rule {
				t.Errorf("%q, want %q", got, tt.rule)
			}
		})
	}
	if d, _ := p.DecideRequest(mustHost(t, "b.example.com"), 8443,
		HTTPRequest{Method: "GET", Target: "/"}); d.Ruling != Allow {
		t.Errorf("another port: %+v", d)
	}
}

// TestRequestSpellings: what some servers read as another path, method, parameter or header matches nothing.
func TestRequestSpellings(t *testing.T) {
	for _, tt := range []struct {
		name, target string
		header       http.Header
		passes       bool
	}{
		{"as it is", "/repos/x?scope=a", http.Header{"X-Scope": {"a"}}, true},
		{"escapes that say nothing", "/repo%73/a%20b%7E?%73cope=%61&x=1", http.Header{"X-Scope": {"a", "a"}, "Connection": {"close"}}, true},
		{"a long form of UTF-8", "/repos/%c0%ae%c0%ae/admin?scope=a", nil, false},
		{"dots of the full width", "/repos/%ef%bc%8e%ef%bc%8e/admin?scope=a", nil, false},
		{"dots and a space", "/repos/..%20/admin?scope=a", nil, false},
		{"three dots", "/repos/.../admin?scope=a", nil, false},
		{"a byte that is not ASCII", "/repos/\xff?scope=a", nil, false},
		{"a fragment", "/repos/x#/../y?scope=a", nil, false},
		{"a method in the query", "/repos/x?scope=a&_method=DELETE", nil, false},
		{"a method in the query, escaped", "/repos/x?scope=a&%5fMethod=DELETE", nil, false},
		{"a method in a header of another spelling", "/repos/x?scope=a", http.Header{"X_http_method": {"DELETE"}}, false},
		{"a method in a header with dots", "/repos/x?scope=a", http.Header{"X.HTTP.Method.Override.": {"DELETE"}}, false},
		{"another path in a header", "/repos/x?scope=a", http.Header{"X-Original-Url": {"/admin"}}, false},
		{"another path in a header of another spelling", "/repos/x?scope=a", http.Header{"x_rewrite_url": {"/admin"}}, false},
		{"a prefix of the path in a header", "/repos/x?scope=a", http.Header{"X-Forwarded-Prefix": {"/admin"}}, false},
		{"another site in a header", "/repos/x?scope=a", http.Header{"X-Forwarded-Host": {"c.d"}}, false},
		{"another path in a header that is dropped", "/repos/x?scope=a", http.Header{"X_Dropped": {"/admin"}, "X-Script-Name": {"/admin"}}, true},
		{"a header with a dot at its end", "/repos/x?scope=a", http.Header{"X-Scope": {"a"}, "X-Scope.": {"b"}}, false},
		{"a parameter as a list", "/repos/x?scope=a&scope[]=b", nil, false},
		{"a parameter in capitals", "/repos/x?scope=a&Scope=b", nil, false},
		{"a parameter in capitals alone", "/repos/x?Scope=a", nil, false},
		{"a header of another spelling alone", "/repos/x?scope=a", http.Header{"X-Scope": {}, "X_scope": {"a"}}, false},
		{"a parameter behind a semicolon", "/repos/x?scope=a&y=1;scope=b", nil, false},
		{"a parameter behind a fragment", "/repos/x?scope=a#&scope=b", nil, false},
		{"a header of another spelling", "/repos/x?scope=a", http.Header{"X-Scope": {"a"}, "X_scope": {"b"}}, false},
		{"a header of the connection", "/repos/x?scope=a", http.Header{"X-Scope": {"a"}, "Connection": {"close, x-scope"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.header == nil {
				tt.header = http.Header{}
			}
			if _, ok := tt.header["X-Scope"]; !ok {
				tt.header["X-Scope"] = []string{"a"}
			}
			p, err := New(Config{Rules: []RequestRule{{
				Name: "r", Hosts: []string{"a.b"}, Methods: []string{"GET"}, Paths: []string{"/repos"},
				Query: []Pair{{"scope", "a"}}, Headers: []Pair{{"X-Scope", "a"}},
				Strip: []string{"x-script-name"},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if d, _ := p.DecideRequest(mustHost(t, "a.b"), 443,
				HTTPRequest{Method: "GET", Target: tt.target,
					Header: tt.header}); (d.Ruling == Allow) != tt.passes {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestRuledConnections: what cannot be looked into does not reach a host that has request rules.
func TestRuledConnections(t *testing.T) {
	for _, tt := range []struct {
		name      string
		inspector Inspector
		exclude   string
		request   Request
		reason    Reason
	}{
		{"CONNECT", inspector{}, "", Request{Protocol: HTTPSConnect}, Allowed},
		{"redirected", inspector{}, "", Request{Protocol: TransparentTCP}, Allowed},
		{"plain HTTP", inspector{}, "", Request{Protocol: HTTP, Method: "DELETE"}, Allowed},
		{"a datagram", inspector{}, "", Request{Protocol: SOCKS5UDP}, MITMRequired},
		{"nothing opens TLS", nil, "", Request{Protocol: HTTPSConnect}, MITMRequired},
		{"a host whose TLS is not to be opened", inspector{}, "api.example.com", Request{Protocol: SOCKS5TCP}, MITMRequired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{Mode: Full, Inspector: tt.inspector, Entries: []Entry{{Pattern: "api.example.com"}},
				Rules: []RequestRule{{Name: "r", Hosts: []string{"api.example.com"}}}}
			if tt.exclude != "" {
				c.Uninspected = []Entry{{Pattern: tt.exclude}}
			}
			p, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			tt.request.Host, tt.request.Port = mustHost(t, "api.example.com"), 443
			if d := p.Decide(tt.request); d.Reason != tt.reason {
				t.Errorf("%+v", d)
			}
		})
	}
}

type inspector struct{}

func (inspector) InspectsTLS() {}

func mustHost(t testing.TB, text string) Host {
	t.Helper()
	h, err := ParseHost(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestRequestRuleErrors: a policy with a broken rule is none.
func TestRequestRuleErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		rule RequestRule
		want string
	}{
		{"no name", RequestRule{Hosts: []string{"a.b"}}, "no name"},
		{"no host", RequestRule{Name: "r"}, "names no host"},
		{"a broken host", RequestRule{Name: "r", Hosts: []string{"a b"}}, "invalid host pattern"},
		{"a broken method", RequestRule{Name: "r", Hosts: []string{"a.b"}, Methods: []string{"GET "}}, "no method"},
		{"a path that is none", RequestRule{Name: "r", Hosts: []string{"a.b"}, Paths: []string{"x"}}, "no path"},
		{"a path with dots", RequestRule{Name: "r", Hosts: []string{"a.b"}, Paths: []string{"/x/../y"}}, "no path"},
		{"a path with an escape", RequestRule{Name: "r", Hosts: []string{"a.b"}, Paths: []string{"/x%20y"}}, "no path"},
		{"a path with a query", RequestRule{Name: "r", Hosts: []string{"a.b"}, Paths: []string{"/x?y"}}, "no path"},
		{"a header that is none", RequestRule{Name: "r", Hosts: []string{"a.b"}, Headers: []Pair{{"a b", "c"}}}, "no name of a header"},
		{"the host", RequestRule{Name: "r", Hosts: []string{"a.b"}, Set: []Pair{{"Host", "c"}}}, "about the connection"},
		{"a length", RequestRule{Name: "r", Hosts: []string{"a.b"}, Strip: []string{"content-length"}}, "about the connection"},
		{"a line break", RequestRule{Name: "r", Hosts: []string{"a.b"}, Set: []Pair{{"A", "b\r\nC: d"}}}, "control character"},
		{"a query without a name", RequestRule{Name: "r", Hosts: []string{"a.b"}, Query: []Pair{{"", "c"}}}, "NAME=VALUE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if p, err := New(Config{Rules: []RequestRule{tt.rule}}); p != nil || err == nil ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, %v", p, err)
			}
		})
	}
	r := RequestRule{Name: "r", Hosts: []string{"a.b"}}
	if p, err := New(Config{Rules: []RequestRule{r, r}}); p != nil || err == nil {
		t.Errorf("two of one name: %v", err)
	}
	if p, err := New(Config{Rules: make([]RequestRule, maxRequestRules+1)}); p != nil || err == nil {
		t.Errorf("too many: %v", err)
	}
}

// FuzzRequestPath: however a server decodes and cleans a path that matches, it is below that of the rule.
func FuzzRequestPath(f *testing.F) {
	for _, s := range []string{"/a/b", "/a/../c", "/a/%2e%2e/c", "/a//..//c", "/a;x/../c", `/a\..\c`,
		"/a/%252e%252e/c", "/a/%5c..", "/a%2f..%2fc"} {
		f.Add(s)
	}
	p, err := New(Config{Rules: []RequestRule{{Name: "r", Hosts: []string{"a.b"}, Paths: []string{"/a"}}}})
	if err != nil {
		f.Fatal(err)
	}
	h, _ := ParseHost("a.b")
	f.Fuzz(func(t *testing.T, target string) {
		if d, _ := p.DecideRequest(h, 443, HTTPRequest{Method: "GET", Target: target}); d.Ruling != Allow {
			return
		}
		text, _, _ := strings.Cut(target, "?")
		for range 3 { // servers behind servers
			for _, read := range []string{text, strings.ReplaceAll(text, `\`, "/"), withoutParameters(text)} {
				if clean := path.Clean(read); clean != "/a" && !strings.HasPrefix(clean, "/a/") {
					t.Errorf("%q is %q for some", target, clean)
				}
			}
			if text, err = url.PathUnescape(text); err != nil {
				return
			}
		}
	})
}

// withoutParameters cuts what is behind a semicolon from each segment.
func withoutParameters(text string) string {
	segments := strings.Split(text, "/")
	for i := range segments {
		segments[i], _, _ = strings.Cut(segments[i], ";")
	}
	return strings.Join(segments, "/")
}

// TestDrops: what a rule strips or sets is not passed on in any spelling that some servers take for it.
func TestDrops(t *testing.T) {
	r := RequestRule{Strip: []string{"X-Role"}, Set: []Pair{{"x_user", "agent"}}}
	for name, want := range map[string]bool{
		"X-Role": true, "x-role": true, "X_Role": true, "X.ROLE": true, "x_role.": true, "-X-Role": true, "X+Role": true,
		"X-User": true, "X_USER": true, "X-Role-2": false, "XRole": false, "X": false, "": false,
	} {
		if r.Drops(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
