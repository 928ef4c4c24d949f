// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// The words that stand for an upstream in settings, in place of an address.
const (
	UpstreamEnvironment = "environment" // what the variables of proxies name
	UpstreamNone        = "none"        // connections are made directly
)

// The schemes of an [UpstreamProxy].
const (
	UpstreamHTTPS  = "https"   // HTTP inside TLS; "http" is the other one without
	UpstreamSOCKS5 = "socks5h" // names are resolved by the proxy
)

// Upstream says which hosts are reached by another proxy, as on machines that have no other way out.
// It does not change. The nil Upstream has none.
type Upstream struct {
	web, other *UpstreamProxy // for plain HTTP, and for the rest; nil for none
	// direct finds the hosts that are reached without: it returns no address for them. Nil means
	// that there are none.
	direct func(*url.URL) (*url.URL, error)
}

// String names the proxies, without passwords; "none" for nil.
func (u *Upstream) String() string {
	switch {
	case u == nil:
		return UpstreamNone
	case u.web == u.other || u.web != nil && u.other != nil && *u.web == *u.other:
		return u.web.String()
	case u.other == nil:
		return u.web.String() + " for plain HTTP"
	case u.web == nil:
		return u.other.String() + " for all but plain HTTP"
	}
	return u.web.String() + " for plain HTTP, " + u.other.String() + " for the rest"
}

// Proxies returns the proxies, each once; none for nil.
func (u *Upstream) Proxies() []*UpstreamProxy {
	var list []*UpstreamProxy
	if u == nil {
		return nil
	}
	for _, p := range []*UpstreamProxy{u.web, u.other} {
		if p != nil && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// UpstreamProxy is a proxy by which hosts are reached. Its texts are without its password.
type UpstreamProxy struct {
	Scheme string // one of the constants
	Host   Host
	Port   uint16

	user, password string
	login          bool
}

// UpstreamError reports an upstream that cannot be used. It contains nothing of the value, which may
// have a password in it.
type UpstreamError struct {
	Source string // the variable with the value; empty for one that was given as it is
	Reason string
}

// Error returns the variable, the reason and the fix.
func (e *UpstreamError) Error() string {
	source := ""
	if e.Source != "" {
		source = " in " + e.Source
	}
	return fmt.Sprintf("invalid upstream proxy%s: %s; write http://[USER:PASSWORD@]HOST:PORT, socks5h://HOST:PORT, or none", source, e.Reason)
}

// ParseUpstream returns the upstream that a setting names: the address of a proxy, for all hosts;
// [UpstreamNone]; or [UpstreamEnvironment], which is the empty one, too. Then variable returns the values
// of variables, such as HTTPS_PROXY, by which curl and Go choose a proxy: those of plain HTTP, those of
// the rest, ALL_PROXY where they are not set, and NO_PROXY for hosts that are reached without. Names in
// lower case come first. The error is an [*UpstreamError].
func ParseUpstream(text string, variable func(name string) string) (*Upstream, error) {
	switch text {
	case UpstreamNone:
		return nil, nil
	case UpstreamEnvironment, "":
		return environmentUpstream(variable)
	}
	p, reason := parseUpstreamProxy(text)
	if reason != "" {
		return nil, &UpstreamError{Reason: reason}
	}
	return &Upstream{web: p, other: p}, nil
}

func environmentUpstream(variable func(string) string) (*Upstream, error) {
	web := []string{"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}
	if variable("REQUEST_METHOD") != "" {
		web = slices.Delete(web, 1, 2) // a client of a CGI program can set it, by a header
	}
	u := new(Upstream)
	var err error
	if u.web, err = firstUpstream(variable, web); err != nil {
		return nil, err
	}
	if u.other, err = firstUpstream(variable, []string{"https_proxy", "HTTPS_PROXY", "all_proxy",
		"ALL_PROXY"}); err != nil {
		return nil, err
	}
	if u.web == nil && u.other == nil {
		return nil, nil
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		if hosts := variable(name); hosts != "" {
			// The address only says that there is one.
			u.direct = (&httpproxy.Config{HTTPSProxy: "http://proxy", NoProxy: hosts}).ProxyFunc()
			break
		}
	}
	return u, nil
}

// firstUpstream returns the proxy of the first variable that is set; nil if none is.
func firstUpstream(variable func(string) string, names []string) (*UpstreamProxy, error) {
	for _, name := range names {
		text := variable(name)
		if text == "" {
			continue
		}
		p, reason := parseUpstreamProxy(text)
		if reason != "" {
			return nil, &UpstreamError{Source: name, Reason: reason}
		}
		return p, nil
	}
	return nil, nil
}

// parseUpstreamProxy reads the address of a proxy. The reason has nothing of the text.
func parseUpstreamProxy(text string) (_ *UpstreamProxy, reason string) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, "it is no URL"
	}
	p := &UpstreamProxy{Scheme: u.Scheme}
	port, ok := map[string]uint16{"http": 80, UpstreamHTTPS: 443, UpstreamSOCKS5: 1080,
		"socks5": 1080}[u.Scheme]
	switch {
	case !ok:
		return nil, "its scheme is not http, https or socks5h"
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, "it has more than a host and a port"
	case u.Scheme == "socks5":
		p.Scheme = UpstreamSOCKS5 // no name is resolved here
	}
	if p.Host, p.Port, err = ParseAuthority(u.Host, port); err != nil {
		return nil, "its host or port is malformed"
	}
	if u.User == nil {
		return p, ""
	}
	p.login, p.user = true, u.User.Username()
	p.password, _ = u.User.Password()
	return p, p.unfitLogin()
}

// unfitLogin says why a user name or password cannot be sent; empty if it can.
func (p *UpstreamProxy) unfitLogin() string {
	const most = 255 // of SOCKS5
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	switch {
	case p.user == "" || len(p.user) > most || len(p.password) > most:
		return "its user name or password is empty or longer than 255 bytes"
	case p.Scheme == UpstreamSOCKS5 && p.password == "":
		return "SOCKS5 needs a password with a user name"
	case strings.Contains(p.user, ":") || strings.ContainsFunc(p.user+p.password, isControl):
		return "its user name or password has a character that cannot be sent"
	}
	return ""
}

// Upstream returns the proxy by which a host is reached that the policy allows; nil for none. Local
// names, protected addresses and those of this machine are never reached by one: there they would mean
// another machine. A name that is reached by one is not to be resolved.
func (p *Policy) Upstream(r Request) *UpstreamProxy {
	if p == nil || p.config.Upstream == nil || r.Host.IsLocal() || (r.Host == Host{}) {
		return nil
	}
	if addr, ok := r.Host.Addr(); ok && (guardOf(addr) != guardNone || p.isHostAddr(addr)) {
		return nil
	}
	u, proxy := p.config.Upstream, p.config.Upstream.other
	if r.Protocol == HTTP || r.Port == 80 {
		proxy = u.web
	}
	if proxy == nil || u.direct == nil {
		return proxy
	}
	if use, err := u.direct(&url.URL{Scheme: "https",
		Host: authority(r.Host, r.Port)}); use == nil && err == nil {
		return nil
	}
	return proxy
}

// authority is a host and port as they stand in a URL.
func authority(h Host, port uint16) string {
	if addr, ok := h.Addr(); ok && addr.Is6() {
		return fmt.Sprintf("[%s]:%d", h, port)
	}
	return fmt.Sprintf("%s:%d", h, port)
}

// String is the URL of the proxy, with asterisks in place of a user name and a password.
func (p *UpstreamProxy) String() string {
	login := ""
	if p.login {
		login = "***@"
	}
	return p.Scheme + "://" + login + p.Authority()
}

// Authority is the host and port of the proxy.
func (p *UpstreamProxy) Authority() string { return authority(p.Host, p.Port) }

// GoString is String, so that no format prints the password.
func (p *UpstreamProxy) GoString() string { return p.String() }

// Login returns the user name and password; ok is false if the proxy asks for none.
func (p *UpstreamProxy) Login() (user, password string, ok bool) { return p.user, p.password, p.login }

// Authorization is the value of the header Proxy-Authorization; empty if the proxy asks for none.
func (p *UpstreamProxy) Authorization() string {
	if !p.login {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(p.user+":"+p.password))
}

// MaskUpstream is a setting of an upstream as it may be shown: without a password.
func MaskUpstream(text string) string {
	if text == UpstreamNone || text == UpstreamEnvironment {
		return text
	}
	p, reason := parseUpstreamProxy(text)
	if reason != "" {
		return "***"
	}
	return p.String()
}
