// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

const (
	// MethodPolicyRequest is a request of the server to the client of a process, about a host.
	MethodPolicyRequest = "network/policyRequest"
	// MethodPolicyDecision is the notification for what was decided about a host.
	MethodPolicyDecision = "network/policyDecision"
)

// NetworkProxy is the managed network of a process.
type NetworkProxy struct {
	Proxy ProxyConfig `json:"proxy"`
	// ExecutionID is the client's name for the process; it may be empty.
	ExecutionID string `json:"executionId,omitempty"`
	// EnvironmentID and AuditMetadata are of the client's own records; a server takes and ignores them.
	EnvironmentID string          `json:"environmentId,omitempty"`
	AuditMetadata json.RawMessage `json:"auditMetadata,omitempty"`
	// DecisionTimeoutMs is how long the client takes to decide about a host, in milliseconds; 0 means
	// that it is not asked.
	DecisionTimeoutMs uint64 `json:"policyDecisionTimeoutMs,omitempty"`
	// Unsupported are as in [Start].
	Unsupported []string `json:"-"`
}

// ProxyConfig is what the network of a process opens.
type ProxyConfig struct {
	Enabled           bool              `json:"enabled"` // always
	SOCKS5            bool              `json:"enableSocks5"`
	SOCKS5UDP         bool              `json:"enableSocks5Udp"`
	AllowUpstream     bool              `json:"allowUpstreamProxy"`
	AllUnixSockets    bool              `json:"dangerouslyAllowAllUnixSockets"`
	Mode              string            `json:"mode"`        // "full" or "limited"
	Domains           map[string]string `json:"domains"`     // "allow" or "deny", by patterns
	UnixSockets       map[string]string `json:"unixSockets"` // the same, by paths
	AllowLocalBinding bool              `json:"allowLocalBinding"`
}

// The words of domains.
const (
	domainAllow = "allow"
	domainDeny  = "deny"
)

// decodeNetworkProxy reads the member networkProxy of process/start.
func decodeNetworkProxy(v json.RawMessage) (*NetworkProxy, error) {
	f := object(v, "NetworkProxyLaunch")
	n := new(NetworkProxy)
	if id := f.optionalText("executionId"); id != nil {
		n.ExecutionID = *id
	}
	if id := f.optionalText("environmentId"); id != nil {
		n.EnvironmentID = *id
	}
	n.AuditMetadata = f.optional("auditMetadata")
	if ms := f.natural("policyDecisionTimeoutMs", "u64"); ms != nil {
		if n.DecisionTimeoutMs = *ms; *ms == 0 {
			f.fail(errors.New("networkProxy: policyDecisionTimeoutMs must not be 0"))
		}
	}
	config := f.need("proxy")
	if f.err != nil {
		return nil, f.err
	}
	var err error
	n.Proxy, err = decodeProxyConfig(config)
	switch p := &n.Proxy; {
	case err != nil:
	case !p.Enabled:
		err = errors.New("networkProxy: the proxy is not enabled; leave networkProxy out")
	case p.AllUnixSockets:
		n.Unsupported = []string{"networkProxy.proxy.dangerouslyAllowAllUnixSockets"}
	case slices.Contains(slices.Collect(maps.Values(p.UnixSockets)), domainAllow):
		n.Unsupported = []string{"networkProxy.proxy.unixSockets"}
	}
	return n, err
}

func decodeProxyConfig(v json.RawMessage) (ProxyConfig, error) {
	f := object(v, "NetworkProxyConfig")
	p := ProxyConfig{
		Enabled: f.flag("enabled", true), SOCKS5: f.choice("enableSocks5", true), SOCKS5UDP: f.choice("enableSocks5Udp", true),
		AllowUpstream: f.choice("allowUpstreamProxy", true), AllUnixSockets: f.choice("dangerouslyAllowAllUnixSockets", false),
		AllowLocalBinding: f.choice("allowLocalBinding", false), Mode: "full",
	}
	if f.optional("mode") != nil {
		p.Mode = f.word("mode", "full", "limited")
	}
	for _, to := range []struct {
		name string
		list *map[string]string
	}{{"domains", &p.Domains}, {"unixSockets", &p.UnixSockets}} {
		if f.optional(to.name) == nil {
			continue
		}
		*to.list = f.texts(to.name)
		for name, word := range *to.list {
			if word != domainAllow && word != domainDeny && (to.name == "domains" || word != "none") {
				f.fail(fmt.Errorf("networkProxy: %s: %q is neither allow nor deny", name, word))
			}
		}
	}
	return p, f.err
}

// Allows reports whether a domain is one that is allowed.
func Allows(word string) bool { return word == domainAllow }

// PolicyRequest are the parameters of network/policyRequest.
type PolicyRequest struct {
	ProcessID string      `json:"processId"`
	Request   HostRequest `json:"request"`
}

// HostRequest is a request for a host.
type HostRequest struct {
	// Protocol is "http", "https_connect", "socks5_tcp" or "socks5_udp", and to clients that take
	// extensions also "transparent_tcp".
	Protocol string `json:"protocol"`
	Host     string `json:"host"`
	Port     uint16 `json:"port"`
}

// PolicyAnswer is the answer to network/policyRequest.
type PolicyAnswer struct {
	Decision PolicyWord `json:"decision"`
}

// PolicyWord is a decision about a host.
type PolicyWord struct {
	Type   string `json:"type"`             // "allow", "deny" or "ask", which is no permission
	Reason string `json:"reason,omitempty"` // of "deny" and "ask"
}

// DecodePolicyAnswer reads the answer to network/policyRequest. Only one that is well formed allows.
func DecodePolicyAnswer(result json.RawMessage) (*PolicyWord, error) {
	const longest = 1024
	f := object(result, "NetworkPolicyResponse")
	v := f.need("decision")
	if f.err != nil {
		return nil, f.err
	}
	f = object(v, "NetworkPolicyDecision")
	w := &PolicyWord{Type: f.word("type", "allow", "deny", "ask")}
	if w.Type != "allow" {
		w.Reason = f.text("reason")
	}
	if len(w.Reason) > longest {
		f.fail(errors.New("the reason is too long"))
	}
	return w, f.err
}

// PolicyDecision are the parameters of network/policyDecision.
type PolicyDecision struct {
	ProcessID string `json:"processId"`
	Timestamp string `json:"timestamp"` // RFC 3339, in UTC
	Scope     string `json:"scope"`     // "domain" or "non_domain"
	Decision  string `json:"decision"`  // "allow" or "deny"
	Source    string `json:"source"`
	Reason    string `json:"reason"`
	Protocol  string `json:"protocol"` // as in HostRequest
	Host      string `json:"host"`
	Port      uint16 `json:"port"`
	Method    string `json:"method"` // "none" where it cannot be seen
	Client    string `json:"client"` // "unknown"
	Override  bool   `json:"policyOverride"`
}
