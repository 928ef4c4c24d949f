// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"net/netip"
)

// Mode says how much of the network a policy opens. The zero Mode is None.
type Mode uint8

// The modes.
const (
	None    Mode = iota // nothing, whatever the entries say
	Limited             // allowed hosts, with the methods GET, HEAD and OPTIONS where they can be seen
	Full                // allowed hosts, any method and any protocol
)

var modeWords = []string{"none", "limited", "full"}

// String returns "none", "limited" or "full", and "unknown" for other values.
func (m Mode) String() string { return wordOf(modeWords, m) }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an error and leaves m
// as it was.
func (m *Mode) UnmarshalText(text []byte) error { return parseWord("mode", modeWords, text, m) }

// Protocol is how a request arrived. The zero Protocol is HTTP.
type Protocol uint8

// The protocols.
const (
	HTTP           Protocol = iota // a request in absolute form, at an HTTP proxy
	HTTPSConnect                   // CONNECT at an HTTP proxy
	SOCKS5TCP                      // CONNECT at a SOCKS5 proxy
	SOCKS5UDP                      // a datagram of a UDP association at a SOCKS5 proxy
	TransparentTCP                 // a connection that was redirected
	DNS                            // a query for a name
)

var protocolWords = []string{"http", "https_connect", "socks5_tcp", "socks5_udp", "transparent_tcp", "dns"}

// String returns the word of the protocol in JSON, such as "https_connect", and "unknown" for a
// Protocol that is not one of the constants.
func (p Protocol) String() string { return wordOf(protocolWords, p) }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (p Protocol) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an error and leaves p
// as it was.
func (p *Protocol) UnmarshalText(text []byte) error {
	return parseWord("protocol", protocolWords, text, p)
}

// Ruling is the outcome of a decision. The zero Ruling is Deny.
type Ruling uint8

// The rulings.
const (
	Deny   Ruling = iota // the policy refuses it
	Allow                // it may go on
	Ask                  // the policy would refuse it, and a person may allow it
	Reject               // it is malformed: there is nothing to judge
)

var rulingWords = []string{"deny", "allow", "ask", "reject"}

// String returns "deny", "allow", "ask" or "reject", and "unknown" for other values.
func (r Ruling) String() string { return wordOf(rulingWords, r) }

// MarshalText implements [encoding.TextMarshaler] with the word of String.
func (r Ruling) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. An unknown word is an error and leaves r
// as it was.
func (r *Ruling) UnmarshalText(text []byte) error {
	return parseWord("ruling", rulingWords, text, r)
}

// Reason says why a decision is what it is, in the word of events and answers. The empty Reason
// is that of the zero Decision.
type Reason string

// The reasons. This package gives the first eight; those below them are of the ways of capture,
// which know more about a request.
const (
	Allowed         Reason = "allowed"
	Denied          Reason = "denied"            // a deny entry names the host or an address of it
	NotAllowed      Reason = "not_allowed"       // no allow entry names the host
	NotAllowedLocal Reason = "not_allowed_local" // a local name or a protected address
	// a method that Limited does not permit, or one that cannot be seen
	MethodNotAllowed Reason = "method_not_allowed"
	MITMRequired     Reason = "mitm_required"    // Limited, and the method is inside TLS that is not opened
	DNSFailed        Reason = "dns_failed"       // the name has no address
	ProxyDisabled    Reason = "proxy_disabled"   // no policy, or the mode None
	ApprovalTimeout  Reason = "approval_timeout" // it was asked about, and no answer came in time
	TooManyPending   Reason = "too_many_pending" // too many questions are open

	InvalidHost       Reason = "invalid_host"       // a host that [ParseHost] refuses
	UnsupportedScheme Reason = "unsupported_scheme" // a URL that is not http:
	HostMismatch      Reason = "host_mismatch"      // the Host header names another host
	SNIMismatch       Reason = "sni_mismatch"       // TLS is for another host, which is not allowed
	// request rules name the host, and none of them permits the request; the Entry has their names
	MITMHookDenied Reason = "mitm_hook_denied"
	// a credential is in a request that it is not for; the Entry has its name
	CredentialMisuse Reason = "credential_misuse"
)

// Source says which part of the policy decided, in the word of events and answers.
type Source string

// The sources.
const (
	BaselinePolicy Source = "baseline_policy" // entries and protected addresses
	ModeGuard      Source = "mode_guard"      // the mode
	ProxyState     Source = "proxy_state"     // there is no policy, or it opens nothing
	Decider        Source = "decider"         // a person, or what answers for one
)

// Entry is one line of a policy.
type Entry struct {
	// Pattern names hosts, with or without a port: "example.com", "*.example.com:443",
	// "192.0.2.7", "[2001:db8::]/32:8000-8999". See docs/network.md for all forms.
	Pattern string
	Deny    bool // the hosts are denied; the zero value allows them
	// Broad accepts a wildcard directly below a public suffix, such as "*.com", and one with no
	// domain behind it, such as "db*".
	Broad bool
	// Protocols are those that the entry is about. None means all.
	Protocols []Protocol
	// Source is where the entry was said, for people: "--allow-host", "/x/config.toml:3:9".
	// It may be empty.
	Source string
}

// Config is what a policy is made from. The zero Config is a policy that refuses all.
type Config struct {
	Mode    Mode
	Entries []Entry
	// AllowPrivate lets allowed names have protected addresses, but not metadata addresses.
	AllowPrivate bool
	// LocalBinding has programs that use the proxy reach their own loopback without it, and so the servers
	// that the command has there, also where entries open ports of this machine. With the zero value they
	// ask the proxy then, which leads to these ports, and to the command at others.
	LocalBinding bool
	// RequireSNI refuses TLS without a server name. The ways of capture ask for it by
	// [Policy.RequireSNI].
	RequireSNI bool
	// Upstream is by which proxy allowed hosts are reached; see [Policy.Upstream]. Nil means that
	// connections are made directly.
	Upstream *Upstream
	// Ask turns the refusal of a host that no entry names into the ruling Ask.
	Ask bool
	// PublicSuffix reports whether names below this one are of different owners: everybody can register
	// one directly below it, such as "com" and "co.uk", or below a name that is below it, such as
	// "amazonaws.com". Package golang.org/x/net/publicsuffix knows the first kind. It must be pure.
	// With nil every wildcard that allows needs [Entry.Broad].
	PublicSuffix func(name string) bool
	// Inspector lets the mode Limited, and Rules, permit TLS, in which each request is judged. With nil
	// they refuse TLS.
	Inspector Inspector
	// Uninspected are hosts whose TLS must not be opened, such as those that ask for a certificate of
	// the client. Only Pattern and Source of an entry count. Where TLS must be opened, such a host is
	// refused, so an entry closes and never opens.
	Uninspected []Entry
	// Rules are the requests that hosts get, for those that a rule names; at most 256.
	Rules []RequestRule
	// HostAddrs are the machine's own addresses. For names they are protected, also public
	// ones, since a service that listens on all interfaces answers there.
	HostAddrs []netip.Addr
	// IsHostAddr reports whether an address is one of this machine's at the moment, beside HostAddrs. It is
	// asked by [Policy.Vet], so before each connection to a name, as addresses come and go. It may look
	// at the machine, and must not block. Nil has none.
	IsHostAddr func(netip.Addr) bool
}

// Request is what is known of a request before a name is resolved.
type Request struct {
	Protocol Protocol
	Host     Host
	Port     uint16
	// Method is that of an HTTP request, exactly as it arrived. Empty means that it cannot be
	// seen.
	Method string

	anyPort bool // an entry for any port and protocol is about it
}

// Decision is what a policy says. The zero Decision denies.
type Decision struct {
	Ruling Ruling
	Reason Reason
	Source Source
	// Entry is the entry that decided; nil where none did. It is part of the policy and must
	// not be changed.
	Entry *Entry
}

// wordOf returns the word of a value.
func wordOf[T ~uint8](words []string, v T) string {
	if int(v) >= len(words) {
		return "unknown"
	}
	return words[v]
}

// parseWord sets v to the value of a word. What names the type in the error.
func parseWord[T ~uint8](what string, words []string, text []byte, v *T) error {
	for i, w := range words {
		if w == string(text) {
			*v = T(i)
			return nil
		}
	}
	return fmt.Errorf("network: unknown %s %q", what, text)
}
