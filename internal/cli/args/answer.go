// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
)

// An Answer is what the network policy of a run says about a request. The member names of its JSON
// form stay.
type Answer struct {
	Type     string           `json:"type"` // always "net_test"
	Host     string           `json:"host"` // normalized
	Port     uint16           `json:"port"`
	Protocol network.Protocol `json:"protocol"`
	Method   string           `json:"method,omitempty"`
	Mode     string           `json:"mode"` // none, limited, full or host
	Decision network.Ruling   `json:"decision"`
	Reason   network.Reason   `json:"reason"`
	Source   network.Source   `json:"source,omitempty"`
	Entry    *Entry           `json:"entry,omitempty"`
	// Resolves says that the name would be resolved, and its addresses judged then.
	Resolves bool `json:"resolves"`
	// Intercepted says that TLS is opened, and each request in it judged.
	Intercepted bool `json:"intercepted,omitempty"`
	// Rule is the request rule that permits the request or, for a connection, those of which one must
	// permit each request.
	Rule string `json:"rule,omitempty"`
	// Credentials are those that requests to the host get.
	Credentials []string `json:"credentials,omitempty"`
	// Upstream is the proxy by which the host would be reached, without its password; empty for none.
	Upstream string `json:"upstream,omitempty"`
	Hint     string `json:"hint,omitempty"` // what would open it
	Flag     string `json:"flag,omitempty"` // the flag that would

	connection bool // the answer is about all requests of a connection
}

// An Entry is the entry that decided.
type Entry struct {
	Pattern string `json:"pattern"`
	Deny    bool   `json:"deny"`
	Source  string `json:"source,omitempty"`
}

// Ask tells what settings and rules say about a request to "host" or "host:port": with a method one
// over HTTP, at port 80, without one a connection that CONNECT asks for, at port 443. Of a URL each part
// counts, and the method is GET if there is none. Nothing is resolved. The error is a
// [*network.HostError], or that of [Config] or [network.New].
func Ask(e *config.Effective, set *rules.Set, authority, method string) (*Answer, error) {
	r, standard := network.Request{Protocol: network.HTTPSConnect, Method: method}, uint16(443)
	scheme, authority, target := cutURL(authority)
	if scheme == "http" && method == "" {
		method, r.Method = "GET", "GET"
	}
	if scheme == "http" || scheme == "" && method != "" {
		r.Protocol, standard = network.HTTP, 80
	}
	var err error
	if r.Host, r.Port, err = network.ParseAuthority(authority, standard); err != nil {
		return nil, err
	}
	a := &Answer{Type: "net_test", Host: r.Host.String(), Port: r.Port, Protocol: r.Protocol, Method: method,
		Mode: e.Values["network.mode"].Text()}
	if a.Mode == config.NetHost {
		a.Decision, a.Reason = network.Allow, network.Allowed
		return a, nil
	}
	c, err := Config(e, set)
	if err != nil {
		return nil, err
	}
	if c.Upstream, err = e.Upstream(); err != nil {
		return nil, err
	}
	for i := range c.Rules {
		c.Rules[i].Headers = nil // which the request has is not known
	}
	policy, err := network.New(c)
	if err != nil {
		return nil, err
	}
	a.judge(policy, r)
	a.judgeRequest(policy, r, target)
	if err := a.addCredentials(e, r); err != nil {
		return nil, err
	}
	if a.Reason == network.ProxyDisabled {
		c.Mode = network.Full
		if policy, err = network.New(c); err != nil {
			return nil, err
		}
		a.wouldBe(policy.Decide(r), r)
	}
	var over *config.CeilingError
	if a.Flag != "" && errors.As(e.Permits([]string{"host:" + patternOf(r)}), &over) {
		a.Flag, a.Hint = "", "the managed configuration does not allow it ("+over.By.Place()+")"
	}
	return a, nil
}

// cutURL splits a URL; a host has no scheme and no target.
func cutURL(text string) (scheme, authority, target string) {
	for _, scheme := range []string{"https", "http"} {
		if rest, ok := strings.CutPrefix(text, scheme+"://"); ok {
			rest, _, _ = strings.Cut(rest, "#")
			i := strings.IndexAny(rest+"/", "/?")
			if authority, target = rest[:i], rest[i:]; !strings.HasPrefix(target, "/") {
				target = "/" + target
			}
			return scheme, authority, target
		}
	}
	return "", text, ""
}

// judgeRequest decides by request rules about what is allowed so far.
func (a *Answer) judgeRequest(policy *network.Policy, r network.Request, target string) {
	if a.Decision != network.Allow || !policy.Ruled(r.Host, r.Port) {
		return
	}
	q := network.HTTPRequest{Method: cmp.Or(a.Method, "GET"), Target: target}
	d, rule := policy.DecideRequest(r.Host, r.Port, q)
	switch {
	case rule != nil:
		a.Rule = rule.Name
	case target == "":
		a.Rule = strings.TrimPrefix(d.Entry.Pattern, "rule ")
	default:
		a.Decision, a.Reason, a.Source, a.Hint, a.Resolves = d.Ruling, d.Reason, d.Source, d.Hint(r), false
	}
	a.connection = target == ""
}

// addCredentials names the credentials that the host gets over TLS.
func (a *Answer) addCredentials(e *config.Effective, r network.Request) error {
	list, err := e.Credentials()
	if err != nil || a.Decision != network.Allow || r.Protocol == network.HTTP {
		return err
	}
	for _, c := range list {
		hosts, err := intercept.CheckCredentialHosts(c.Hosts, intercept.IsPublicSuffix)
		if err != nil {
			return err
		}
		if hosts.Decide(network.Request{Protocol: network.HTTPSConnect, Host: r.Host,
			Port: r.Port}).Ruling == network.Allow {
			a.Credentials = append(a.Credentials, c.Name)
		}
	}
	return nil
}

// patternOf returns the pattern for the host and port of a request alone.
func patternOf(r network.Request) string {
	return network.Decision{Reason: network.NotAllowed}.Pattern(r)
}

// wouldBe says what opens a host where the network is off, from the decision if it were on.
func (a *Answer) wouldBe(d network.Decision, r network.Request) {
	a.Hint, a.Flag = d.Hint(r), flagFor(d, r)
	if d.Ruling == network.Allow {
		a.Hint, a.Flag = "an entry allows it where the network is on", "--net proxy"
	}
}

// flagFor returns the flag that opens a refused host; empty if none does.
func flagFor(d network.Decision, r network.Request) string {
	if p := d.Pattern(r); p != "" {
		return "--allow-host " + explain.ShellWord(p)
	}
	return ""
}

// judge decides, also about addresses that are known without a resolver.
func (a *Answer) judge(policy *network.Policy, r network.Request) {
	opened := r
	opened.Method = ""
	d := policy.Decide(opened) // a connection comes before the request in it
	if r.Protocol == network.HTTP || d.Ruling == network.Allow {
		d = policy.Decide(r)
	}
	entry := d.Entry
	if d.Ruling == network.Allow {
		addrs := r.Host.LocalAddrs()
		if addr, ok := r.Host.Addr(); ok {
			addrs = []netip.Addr{addr}
		}
		proxy := policy.Upstream(r)
		if proxy != nil {
			a.Upstream = proxy.String()
		}
		if a.Resolves = addrs == nil && proxy == nil; addrs != nil {
			if _, d = policy.Vet(r, addrs); d.Ruling != network.Allow {
				entry = d.Entry
			}
		}
	}
	a.Decision, a.Reason, a.Source, a.Hint, a.Flag = d.Ruling, d.Reason, d.Source, d.Hint(r), flagFor(d, r)
	a.Intercepted = d.Ruling == network.Allow && r.Protocol == network.HTTPSConnect &&
		policy.Intercepts(r.Host, r.Port)
	if entry != nil {
		a.Entry = &Entry{entry.Pattern, entry.Deny, entry.Source}
	}
}

// Allowed reports whether the request is allowed.
func (a *Answer) Allowed() bool { return a.Decision == network.Allow }

// reasons are the reasons in words.
var reasons = map[network.Reason]string{
	network.Denied:           "an entry denies it",
	network.NotAllowed:       "no entry allows it",
	network.NotAllowedLocal:  "it is local or private, and no entry for it allows it",
	network.MethodNotAllowed: "the mode limited does not permit it",
	network.MITMRequired:     "its TLS cannot be looked into",
	network.MITMHookDenied:   "no rule for its requests permits it",
	network.ProxyDisabled:    "the network is off",
}

// String is the answer for people: a line with the decision, then what it rests on.
func (a *Answer) String() string {
	var b strings.Builder
	at := fmt.Sprintf("%s:%d", a.Host, a.Port)
	if strings.Contains(a.Host, ":") {
		at = fmt.Sprintf("[%s]:%d", a.Host, a.Port)
	}
	if a.Method != "" {
		at = text.Word(a.Method) + " " + at
	}
	switch {
	case a.Mode == config.NetHost:
		fmt.Fprintf(&b, "%s: allowed; commands have the network of the host, and nothing is judged\n", at)
		return b.String()
	case a.Decision == network.Allow:
		fmt.Fprintf(&b, "%s: allowed\n", at)
	case a.Decision == network.Ask:
		fmt.Fprintf(&b, "%s: asked about: %s\n", at, reasons[a.Reason])
	default:
		fmt.Fprintf(&b, "%s: denied: %s\n", at, reasons[a.Reason])
	}
	row := func(name, text string) { fmt.Fprintf(&b, "  %-6s %s\n", name, text) }
	if a.Entry != nil {
		row("entry", text.Word(a.Entry.Pattern)+" ("+text.Line(a.Entry.Source)+")")
	}
	row("mode", a.Mode)
	if a.Upstream != "" {
		row("via", a.Upstream+", which resolves names and judges no addresses")
	}
	switch {
	case a.Rule != "" && a.connection:
		row("rule", a.Rule+": each request must match")
	case a.Rule != "":
		row("rule", a.Rule)
	}
	if len(a.Credentials) > 0 {
		row("secret", strings.Join(a.Credentials, ", "))
	}
	if a.Intercepted && a.Mode == config.NetLimited {
		row("tls", "opened: only GET, HEAD and OPTIONS pass")
	} else if a.Intercepted {
		row("tls", "opened")
	}
	if a.Resolves {
		row("note", "its addresses are judged when it is resolved: private ones need an entry of their own")
	}
	switch {
	case a.Flag != "":
		row("fix", "allow with "+a.Flag)
	case a.Hint != "":
		row("fix", text.Line(a.Hint))
	}
	return b.String()
}
