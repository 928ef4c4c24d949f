// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
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
	_ struct{} `rule:"name=NetworkProxyLaunch"`
	// ExecutionID is the client's name for the process; it may be empty.
	ExecutionID string `json:"executionId,omitempty"`
	// EnvironmentID and AuditMetadata are of the client's own records; a server takes and ignores them.
	EnvironmentID string          `json:"environmentId,omitempty"`
	AuditMetadata json.RawMessage `json:"auditMetadata,omitempty"`
	// DecisionTimeoutMs is how long the client takes to decide about a host, in milliseconds; 0 means
	// that it is not asked.
	DecisionTimeoutMs uint64      `json:"policyDecisionTimeoutMs,omitempty" rule:"filled=networkProxy: policyDecisionTimeoutMs"`
	Proxy             ProxyConfig `json:"proxy" rule:"need"`
	// Unsupported are as in [Start].
	Unsupported []string `json:"-"`
}

// Validate returns what is wrong with the parameters, and sets Unsupported.
func (n *NetworkProxy) Validate() error {
	switch p := &n.Proxy; {
	case !p.Enabled:
		return errors.New("networkProxy: the proxy is not enabled; leave networkProxy out")
	case p.AllUnixSockets:
		n.Unsupported = []string{"networkProxy.proxy.dangerouslyAllowAllUnixSockets"}
	case slices.Contains(slices.Collect(maps.Values(p.UnixSockets)), domainAllow):
		n.Unsupported = []string{"networkProxy.proxy.unixSockets"}
	}
	return nil
}

// ProxyConfig is what the network of a process opens.
type ProxyConfig struct {
	_                 struct{} `rule:"name=NetworkProxyConfig"`
	Enabled           bool     `json:"enabled" rule:"need"` // always
	SOCKS5            bool     `json:"enableSocks5" rule:"true"`
	SOCKS5UDP         bool     `json:"enableSocks5Udp" rule:"true"`
	AllowUpstream     bool     `json:"allowUpstreamProxy" rule:"true"`
	AllUnixSockets    bool     `json:"dangerouslyAllowAllUnixSockets"`
	AllowLocalBinding bool     `json:"allowLocalBinding"`
	// empty is "full" when it is decoded
	Mode string `json:"mode" rule:"one=full|limited"`
	// "allow" or "deny", by patterns
	Domains     map[string]string `json:"domains"`
	UnixSockets map[string]string `json:"unixSockets"` // the same or "none", by paths
}

// Validate returns what is wrong with the words, and sets Mode.
func (p *ProxyConfig) Validate() error {
	p.Mode = cmp.Or(p.Mode, "full")
	for i, words := range []map[string]string{p.Domains, p.UnixSockets} {
		for name, word := range words {
			if word != domainAllow && word != domainDeny && (i == 0 || word != "none") {
				return fmt.Errorf("networkProxy: %s: %q is neither allow nor deny", name, word)
			}
		}
	}
	return nil
}

// The words of domains.
const (
	domainAllow = "allow"
	domainDeny  = "deny"
)

// Allows reports whether a domain is one that is allowed.
func Allows(word string) bool { return word == domainAllow }

// PolicyRequest are the parameters of network/policyRequest.
type PolicyRequest struct {
	ProcessID string      `json:"processId" rule:"need"`
	Request   HostRequest `json:"request" rule:"need"`
}

// HostRequest is a request for a host.
type HostRequest struct {
	// Protocol is "http", "https_connect", "socks5_tcp" or "socks5_udp", and to clients that take
	// extensions also "transparent_tcp".
	Protocol string `json:"protocol" rule:"need"`
	Host     string `json:"host" rule:"need"`
	Port     uint16 `json:"port" rule:"need"`
}

// PolicyAnswer is the answer to network/policyRequest.
type PolicyAnswer struct {
	_        struct{}   `rule:"name=NetworkPolicyResponse"`
	Decision PolicyWord `json:"decision" rule:"need"`
}

// PolicyWord is a decision about a host.
type PolicyWord struct {
	_      struct{} `rule:"name=NetworkPolicyDecision"`
	Type   string   `json:"type" rule:"need,one=allow|deny|ask"` // "ask" is no permission
	Reason string   `json:"reason,omitempty"`                    // of "deny" and "ask"
}

// Validate returns what is wrong with the reason.
func (w *PolicyWord) Validate() error {
	const longest = 1024
	if w.Type != domainAllow && w.Reason == "" {
		return errors.New("missing field `reason`")
	}
	if len(w.Reason) > longest {
		return errors.New("the reason is too long")
	}
	return nil
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
	// Addresses is an extension: those of a name that was refused because all of them are protected.
	Addresses []string `json:"addresses,omitempty"`
}
