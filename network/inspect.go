// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
)

// Inspector opens TLS for the ways of capture. A policy has one to say that requests inside TLS can be
// judged; this package calls no method of it.
type Inspector interface {
	// InspectsTLS marks the type.
	InspectsTLS()
}

// Inspector returns what opens TLS; nil if nothing does, and for a nil Policy.
func (p *Policy) Inspector() Inspector {
	if p == nil {
		return nil
	}
	return p.config.Inspector
}

// Inspects reports whether requests to a host must be seen, each of them: to every host in the mode
// Limited, and to those that a request rule names.
func (p *Policy) Inspects(h Host, port uint16) bool { return p.Mode() == Limited || p.Ruled(h, port) }

// Intercepts reports whether TLS to a host must be opened, so that each request in it is judged. That
// is so where [Policy.Inspects] is true, unless [Config.Uninspected] names the host or there is no
// Inspector: TLS to it is refused then.
func (p *Policy) Intercepts(h Host, port uint16) bool {
	return p.Inspects(h, port) && p.config.Inspector != nil &&
		p.uninspected.finds(&Request{Host: h, Port: port}) == nil
}

// Uninspected returns the entry of [Config.Uninspected] that names a host, or nil. TLS to such a host is
// not opened for any reason.
func (p *Policy) Uninspected(h Host, port uint16) *Entry {
	if p == nil {
		return nil
	}
	return p.uninspected.finds(&Request{Host: h, Port: port})
}

// addUninspected reads the entries of [Config.Uninspected].
func (p *Policy) addUninspected(list []Entry) error {
	if len(list) > maxEntries {
		return tooMany(len(list))
	}
	var bad []error
	for _, e := range list {
		pattern, reason := parsePattern(e.Pattern)
		if reason != "" {
			bad = append(bad, &EntryError{Entry: e, Reason: reason})
			continue
		}
		e.Deny, e.Protocols = true, nil // it closes only, so that it may be as wide as it likes
		p.uninspected.add(&pattern, &e)
	}
	return errors.Join(bad...)
}

// carriesTLS reports whether what arrives by a protocol can be TLS that is opened.
func (p Protocol) carriesTLS() bool {
	return p == HTTPSConnect || p == SOCKS5TCP || p == TransparentTCP
}
