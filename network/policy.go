// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
)

// maxEntries is the number of entries that a policy may have.
const maxEntries = 10_000

// Policy is an immutable snapshot of what is open. It may be used by several goroutines at once.
// A nil Policy refuses all.
type Policy struct {
	mode         Mode
	allowPrivate bool
	requireSNI   bool
	ask          bool
	hostAddrs    []netip.Addr
	allow, deny  index
	uninspected  index
	rules        []requestRule

	version uint64 // after the first one
	config  Config // what it was made from, for With
}

// EntryError reports an entry that a policy cannot have.
type EntryError struct {
	Entry  Entry
	Reason string // why, with the fix
}

// Error returns a text with the pattern quoted and the source where it is known.
func (e *EntryError) Error() string {
	source := ""
	if e.Entry.Source != "" {
		source = e.Entry.Source + ": "
	}
	return fmt.Sprintf("%sinvalid host pattern %s: %s", source,
		strconv.QuoteToASCII(e.Entry.Pattern), e.Reason)
}

// tooMany is the error for a number of entries above maxEntries.
func tooMany(n int) error {
	return fmt.Errorf("too many entries in the network policy: %d, at most %d", n, maxEntries)
}

// New returns the policy of a configuration, which may be changed afterwards. With entries that are not
// valid the policy is nil, and the error joins an [*EntryError] for each of them. With more than
// 10 000 it is an error.
func New(c Config) (*Policy, error) {
	if len(c.Entries) > maxEntries {
		return nil, tooMany(len(c.Entries))
	}
	if c.Mode > Full {
		return nil, fmt.Errorf("network: unknown mode %d", c.Mode)
	}
	p := &Policy{mode: c.Mode, allowPrivate: c.AllowPrivate, requireSNI: c.RequireSNI, ask: c.Ask}
	for _, addr := range c.HostAddrs {
		p.hostAddrs = append(p.hostAddrs, addr.WithZone("").Unmap())
	}
	var bad []error
	for _, e := range c.Entries {
		e.Protocols = slices.Clone(e.Protocols)
		pattern, reason := parsePattern(e.Pattern)
		if reason == "" {
			reason = e.problem(&pattern, c.PublicSuffix)
		}
		if reason != "" {
			bad = append(bad, &EntryError{Entry: e, Reason: reason})
			continue
		}
		list := &p.allow
		if e.Deny {
			list = &p.deny
		}
		list.add(&pattern, &e)
	}
	if err := errors.Join(p.addUninspected(c.Uninspected), p.addRequestRules(c.Rules)); err != nil {
		bad = append(bad, err)
	}
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	c.Entries, c.HostAddrs, c.Uninspected = slices.Clone(c.Entries), p.hostAddrs, slices.Clone(c.Uninspected)
	c.Rules = slices.Clone(c.Rules)
	p.config = c
	return p, nil
}

// With returns a policy with more entries, of the same version. The errors are those of [New]. A nil
// Policy opens nothing, and stays so.
func (p *Policy) With(entries ...Entry) (*Policy, error) {
	if p == nil || len(entries) == 0 {
		return p, nil
	}
	c := p.config
	c.Entries = slices.Concat(c.Entries, entries)
	more, err := New(c)
	if err != nil {
		return nil, err
	}
	more.version = p.version
	return more, nil
}

// Amend is With for an entry that takes the place of those that say the opposite about the same hosts.
func (p *Policy) Amend(e Entry) (*Policy, error) {
	if p == nil {
		return nil, nil
	}
	replaced, _ := parsePattern(e.Pattern)
	c := p.config
	c.Entries = slices.DeleteFunc(slices.Clone(c.Entries), func(o Entry) bool {
		old, _ := parsePattern(o.Pattern)
		return o.Deny != e.Deny && reflect.DeepEqual(old, replaced)
	})
	q := *p
	q.config = c
	return q.With(e)
}

// problem says what is wrong with an entry whose pattern can be read; empty for nothing. A wide
// entry that denies is fine.
func (e *Entry) problem(p *pattern, isPublic func(string) bool) string {
	for _, protocol := range e.Protocols {
		if protocol > DNS {
			return "unknown protocol " + strconv.Itoa(int(protocol))
		}
	}
	host := Host{name: p.suffix}
	switch {
	case !p.isWild() || e.Deny || e.Broad || host.underLocalhost():
		return ""
	case p.suffix == "":
		return "it matches names of all owners; name a domain behind it"
	case isPublic == nil:
		return "public suffixes are not known here; set Config.PublicSuffix, or Broad for the entry"
	case isPublic(p.suffix):
		return fmt.Sprintf("everybody can have a name below %q; name a domain", p.suffix)
	}
	return ""
}

// Mode returns the mode; None for a nil Policy.
func (p *Policy) Mode() Mode {
	if p == nil {
		return None
	}
	return p.mode
}

// LocalBinding is [Config.LocalBinding]; false for a nil Policy.
func (p *Policy) LocalBinding() bool { return p != nil && p.config.LocalBinding }

// Denies reports whether an entry denies hosts; false for a nil Policy.
func (p *Policy) Denies() bool {
	return p != nil && slices.ContainsFunc(p.config.Entries, func(e Entry) bool { return e.Deny })
}

// Judges reports whether more than entries is said about requests: a mode that limits them, rules for
// them, or what changes them, such as credentials. It is false for a nil Policy.
func (p *Policy) Judges() bool {
	return p != nil && (p.mode == Limited || p.ask || len(p.rules) > 0 || p.config.Inspector != nil)
}

// RequireSNI reports whether TLS without a server name is refused. It is true for a nil Policy.
func (p *Policy) RequireSNI() bool { return p == nil || p.requireSNI }

// Decide judges a request before its name is resolved. Only if the ruling is Allow, or a person
// allowed it after the ruling Ask, may the name be resolved; then [Policy.Vet] judges the
// addresses. It does not allocate.
//
// In this order: a request without a host or a port is rejected; a deny entry refuses; a local
// name or protected address needs an entry for it; another host needs an entry, or is asked
// about; the mode must permit the method. A request whose method is seen later is judged again
// then. Nothing is asked about that the mode would refuse.
func (p *Policy) Decide(r Request) Decision {
	switch {
	case r.Port == 0 || r.Host == Host{} || r.Protocol > DNS:
		return Decision{Reject, InvalidHost, BaselinePolicy, nil}
	case p.Mode() == None:
		return Decision{Deny, ProxyDisabled, ProxyState, nil}
	}
	if e := p.denies(&r); e != nil {
		return Decision{Deny, Denied, BaselinePolicy, e}
	}
	e, closed := p.allows(&r)
	refusal, by := p.modeRefuses(&r)
	switch {
	case e == nil && closed:
		return Decision{Deny, NotAllowedLocal, BaselinePolicy, nil}
	case e == nil && p.ask && refusal == "":
		return Decision{Ask, NotAllowed, BaselinePolicy, nil}
	case e == nil:
		return Decision{Deny, NotAllowed, BaselinePolicy, nil}
	case refusal != "":
		return Decision{Deny, refusal, ModeGuard, by}
	}
	return Decision{Allow, Allowed, BaselinePolicy, e}
}

// DecideName judges a name that is asked for before it is known what for. It is allowed if an entry
// opens any port of it, and refused if one denies all of them. A request for it is judged by
// [Policy.Decide] when it comes.
func (p *Policy) DecideName(h Host) Decision {
	switch {
	case h == Host{}:
		return Decision{Reject, InvalidHost, BaselinePolicy, nil}
	case p.Mode() == None:
		return Decision{Deny, ProxyDisabled, ProxyState, nil}
	}
	if e := p.denies(&Request{Protocol: DNS, Host: h}); e != nil {
		return Decision{Deny, Denied, BaselinePolicy, e}
	}
	e, closed := p.allows(&Request{Protocol: DNS, Host: h, anyPort: true})
	switch {
	case e == nil && closed:
		return Decision{Deny, NotAllowedLocal, BaselinePolicy, nil}
	case e == nil && p.ask:
		return Decision{Ask, NotAllowed, BaselinePolicy, nil}
	case e == nil:
		return Decision{Deny, NotAllowed, BaselinePolicy, nil}
	}
	return Decision{Allow, Allowed, BaselinePolicy, e}
}

// denies returns the entry that denies the host of a request, or nil.
func (p *Policy) denies(q *Request) *Entry {
	if e := first(p.deny.all, q); e != nil {
		return e
	}
	if addr, ok := q.Host.Addr(); ok {
		return p.deniesAddr(addr, q)
	}
	return p.deny.name(q, false)
}

// deniesAddr returns the entry that denies an address, or an IPv4 address that it carries.
func (p *Policy) deniesAddr(addr netip.Addr, q *Request) *Entry {
	if e := p.deny.addr(addr, q, guardNone); e != nil {
		return e
	}
	for carried := range carriedBy(addr) {
		if e := p.deny.addr(carried, q, guardNone); e != nil {
			return e
		}
	}
	return nil
}

// allows returns the entry that allows the host of a request, or nil. Closed reports a local
// name or a protected address, which nothing but an entry for it opens.
func (p *Policy) allows(q *Request) (e *Entry, closed bool) {
	if addr, ok := q.Host.Addr(); ok {
		g := p.guardOf(addr)
		return p.allow.addr(addr, q, g), g != guardNone
	}
	local := q.Host.IsLocal()
	if e := p.allow.name(q, local); e != nil {
		return e, false
	}
	if local {
		return nil, !p.allowPrivate
	}
	return first(p.allow.all, q), false
}

// guardOf returns the guard of an address under this policy.
func (p *Policy) guardOf(addr netip.Addr) guard {
	g := guardOf(addr)
	if g == guardPrivate && p.allowPrivate {
		return guardNone
	}
	return g
}

// modeRefuses returns why the mode refuses a request, empty if it does not, and the entry that made it
// so. A connection that can carry TLS is permitted where TLS is opened: its requests are judged then.
func (p *Policy) modeRefuses(q *Request) (Reason, *Entry) {
	unseen := q.Protocol == SOCKS5UDP || q.Method == "" && q.Protocol.carriesTLS()
	if len(p.rules) > 0 && unseen && p.Ruled(q.Host, q.Port) { // each request must be seen
		if e := p.uninspected.finds(q); e != nil || p.config.Inspector == nil || !q.Protocol.carriesTLS() {
			return MITMRequired, e
		}
	}
	if p.mode == Full {
		return "", nil
	}
	switch q.Method {
	case "GET", "HEAD", "OPTIONS":
		if q.Protocol != SOCKS5UDP {
			return "", nil
		}
	case "":
		if !q.Protocol.carriesTLS() {
			break
		}
		if p.config.Inspector != nil {
			if e := p.uninspected.finds(q); e != nil {
				return MITMRequired, e
			}
			return "", nil
		}
		if q.Port == 443 {
			return MITMRequired, nil
		}
	}
	return MethodNotAllowed, nil
}

// Vet returns those of the addresses of a name that may be dialed for a request, in their order,
// and the decision to allow them or to refuse if there are none. The request has been allowed by
// [Policy.Decide] or by a person. For a host that is an address only that address is returned.
//
// Denied and protected addresses are left out. An entry for a protected address opens it for
// names, too, on the ports of that entry. A local name has only the addresses of
// [Host.LocalAddrs], and needs an entry for it.
func (p *Policy) Vet(r Request, addrs []netip.Addr) ([]netip.Addr, Decision) {
	if p.Mode() == None {
		return nil, Decision{Deny, ProxyDisabled, ProxyState, nil}
	}
	var fit []netip.Addr
	refusal := Decision{Deny, DNSFailed, BaselinePolicy, nil}
	for _, addr := range addrs {
		addr = addr.Unmap()
		if e := p.deniesAddr(addr, &r); e != nil {
			refusal = Decision{Deny, Denied, BaselinePolicy, e}
			continue
		}
		if p.opens(addr, &r) {
			fit = append(fit, addr)
		} else if refusal.Reason != Denied {
			refusal = Decision{Deny, NotAllowedLocal, BaselinePolicy, nil}
		}
	}
	if len(fit) == 0 {
		return nil, refusal
	}
	return fit, Decision{Allow, Allowed, BaselinePolicy, nil}
}

// opens reports whether an address that no entry denies may be dialed for a host.
func (p *Policy) opens(addr netip.Addr, q *Request) bool {
	switch literal, ok := q.Host.Addr(); {
	case !addr.IsValid() || addr.Zone() != "":
		return false
	case ok && addr != literal:
		return false
	case q.Host.IsLocal():
		e, closed := p.allows(q)
		return slices.Contains(q.Host.LocalAddrs(), addr) && (e != nil || !closed)
	case !ok && !p.allowPrivate && p.isHostAddr(addr):
		return p.allow.addr(addr, q, max(guardPrivate, guardOf(addr))) != nil
	}
	g := p.guardOf(addr)
	return g == guardNone || p.allow.addr(addr, q, g) != nil
}

// isHostAddr reports whether an address, or one that it leads to, is one of this machine now.
func (p *Policy) isHostAddr(addr netip.Addr) bool {
	is := func(addr netip.Addr) bool {
		return slices.Contains(p.hostAddrs, addr) || p.config.IsHostAddr != nil && p.config.IsHostAddr(addr)
	}
	if is(addr) {
		return true
	}
	for carried := range carriedBy(addr) {
		if is(carried) {
			return true
		}
	}
	return false
}

// Pattern returns the pattern of an entry that would open a refused request: "host:port". It is
// empty where none would, or where it takes more than that.
func (d Decision) Pattern(r Request) string {
	_, literal := r.Host.Addr()
	if d.Reason == NotAllowed || d.Reason == NotAllowedLocal && (literal || r.Host.IsLocal()) {
		if r.Port == 0 { // of a name that was asked for
			return r.Host.String()
		}
		return r.Host.withPort(r.Port)
	}
	return ""
}

// AddrPattern returns the pattern of an entry that opens a name that was refused because of its addresses:
// for the first of them with which the name is reached then. It is empty where no entry would, and for the
// addresses of cloud metadata, which a name must not lead to.
func (p *Policy) AddrPattern(r Request, addrs []netip.Addr) string {
	for _, addr := range addrs {
		addr = addr.Unmap()
		if guardOf(addr) == guardMetadata {
			continue
		}
		pattern := AddrHost(addr).withPort(r.Port)
		more, err := p.With(Entry{Pattern: pattern})
		if err != nil {
			continue
		}
		if fit, _ := more.Vet(r, []netip.Addr{addr}); len(fit) > 0 {
			return pattern
		}
	}
	return ""
}

// Hint returns one sentence that says what would open a refused request, or what to check. It is
// empty for an allowed one and for reasons of the ways of capture. It names no flag: the command
// line has its own words for [Decision.Pattern].
func (d Decision) Hint(r Request) string {
	if p := d.Pattern(r); p != "" {
		return "an allow entry for " + p + " opens it"
	}
	switch d.Reason {
	case NotAllowedLocal:
		return "the name has a private address; an allow entry for that address opens it, too"
	case Denied:
		return d.Entry.denial()
	case MethodNotAllowed:
		return "the mode limited permits GET, HEAD and OPTIONS over HTTP; set network.mode to full for others"
	case MITMRequired:
		if d.Entry != nil {
			return fmt.Sprintf("network.mitm.exclude names it (%s), and the mode limited, or a rule for its requests, has to look into TLS; set network.mode to full, or remove the rule", strconv.QuoteToASCII(d.Entry.Pattern))
		}
		return "the mode limited, a rule for its requests or a credential of it, or of a host at its address, has to look into TLS, which cannot be done here; set network.mode to full, remove the rule, or name ports in the hosts of the credential"
	case MITMHookDenied:
		if d.Entry != nil {
			return d.Entry.Pattern +
				" of network.mitm.rules names the host, and does not permit the request; correct the request, or add a rule for it"
		}
		return "no rule of network.mitm.rules permits it"
	case CredentialMisuse:
		return "a credential goes to its own hosts only, over TLS; add the host to network.credentials.NAME.hosts if it may have it"
	case DNSFailed:
		return "the name has no address; check its spelling"
	case ProxyDisabled:
		return "the network policy opens no host; add allow entries"
	case ApprovalTimeout:
		return "no answer came in time; an allow entry for " + r.Host.withPort(r.Port) +
			" opens it without a question"
	case TooManyPending:
		return "too many questions about hosts are open; try again when they are answered"
	}
	return ""
}

// denial says which entry denies.
func (e *Entry) denial() string {
	text := "a deny entry names it, which wins over every entry that allows"
	if e == nil {
		return text
	}
	text = fmt.Sprintf("the deny entry %s names it, which wins over every entry that allows",
		strconv.QuoteToASCII(e.Pattern))
	if e.Source != "" {
		text += " (" + e.Source + ")"
	}
	return text
}

// withPort returns "host:port", with an IPv6 address in brackets.
func (h Host) withPort(port uint16) string {
	if h.addr.IsValid() {
		return netip.AddrPortFrom(h.addr, port).String()
	}
	return h.name + ":" + strconv.Itoa(int(port))
}
