// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"net/netip"
	"time"
)

// Record is what a managed network did with one request: its decision, or the end of its connection.
type Record struct {
	Host     string   `json:"host"` // normalized; what the program sent, quoted, where that is no host
	Port     uint16   `json:"port"` // 0 where it is unknown
	Protocol Protocol `json:"protocol"`
	Method   string   `json:"method,omitempty"` // of plain HTTP; empty where it cannot be seen
	Decision Ruling   `json:"decision"`         // the last word: Allow, Deny or Reject
	Reason   Reason   `json:"reason"`
	Source   Source   `json:"source"`
	// Rule is the pattern of the entry that decided; empty where none did.
	Rule string `json:"rule,omitempty"`
	// PolicyVersion is [Policy.Version] of the policy of that time.
	PolicyVersion uint64    `json:"policy_version"`
	Time          time.Time `json:"-"` // of the decision
	// Addrs are the addresses of a name that was refused because the policy closes all of them.
	Addrs []netip.Addr `json:"-"`
	// End is nil for a decision.
	End *End `json:"end,omitempty"`
}

// Scope returns "domain" for a name and "non_domain" for all else, in the words of telemetry.
func (r *Record) Scope() string {
	if h, err := ParseHost(r.Host); err == nil && h.Name() != "" {
		return "domain"
	}
	return "non_domain"
}

// End is the end of a connection that was allowed.
type End struct {
	// Resolved is the address and port that it went to; empty if it could not be made, or was made by
	// an upstream proxy.
	Resolved string `json:"resolved,omitempty"`
	Up       int64  `json:"bytes_up"` // from the command
	Down     int64  `json:"bytes_down"`
	MS       int64  `json:"duration_ms"` // since the decision
	// Cause is a word: ended, failed, dial_failed, idle, sni_mismatch, interrupted (the command has
	// ended) or revoked (the policy changed).
	Cause string `json:"cause"`
}
