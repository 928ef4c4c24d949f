// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package netpolicy makes the network policy of a run from settings, flags and rules, and tells
// what it says about a host.
//
// Settings come with their ceiling applied, see [config.Effective]. Rules about hosts add entries:
// nothing here lets one opening take the place of a denial.
package netpolicy

import (
	"net/netip"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/suffixes"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
)

// modes are the modes of settings that have a network policy. With the network of the host
// nothing is judged.
var modes = map[string]network.Mode{
	config.NetNone: network.None, config.NetLimited: network.Limited, config.NetFull: network.Full,
}

// Config returns what the network policy of a run is made from: settings with flags, and rules,
// which may be nil. Entries have their places. The error is that of rules that did not load: then
// nothing is open. Rules open nothing beyond the ceiling. HostAddrs are left to the caller.
func Config(e *config.Effective, set *rules.Set) (network.Config, error) {
	if err := set.Err(); err != nil {
		return network.Config{}, err
	}
	is := func(key string) bool { return e.Values[key].Text() == "true" }
	c := network.Config{
		Mode:         modes[e.Values["network.mode"].Text()], // None for the host's, and where nothing is set
		AllowPrivate: is("network.allow_private"), RequireSNI: is("network.require_sni"), Ask: is("network.ask"),
		PublicSuffix: suffixes.IsPublic,
	}
	for _, list := range []string{"network.allow", "network.deny"} {
		for _, s := range e.Values[list].Settings {
			c.Entries = append(c.Entries, network.Entry{Pattern: s.Text, Deny: list == "network.deny", Source: s.Origin.Place()})
		}
	}
	for _, entry := range ruleEntries(set.Networks()) {
		if entry.Deny || e.Permits([]string{"host:" + entry.Pattern}) == nil {
			c.Entries = append(c.Entries, entry)
		}
	}
	return c, nil
}

// protocols are those that a rule which allows opens. Connections of programs that know of no proxy are
// led to it, and are no wider than what these programs could ask a proxy for.
var protocols = map[string][]network.Protocol{
	"http": {network.HTTP}, "https": {network.HTTPSConnect, network.TransparentTCP},
	"socks5_tcp": {network.SOCKS5TCP, network.TransparentTCP}, "socks5_udp": {network.SOCKS5UDP},
}

// ruleEntries returns the entries of rules about hosts. In one file the last decision about a host
// takes the place of others; between files a denial wins. A rule that denies counts for every
// protocol, since most programs choose theirs by themselves. One that asks denies: a host that it
// names must not pass by an entry that is wider.
func ruleEntries(list []rules.NetworkRule) []network.Entry {
	var kept []rules.NetworkRule
	for _, r := range list {
		kept = slices.DeleteFunc(kept, func(o rules.NetworkRule) bool {
			return o.File == r.File && o.Host == r.Host && o.Decision != r.Decision
		})
		kept = append(kept, r)
	}
	var entries []network.Entry
	for _, r := range kept {
		e := network.Entry{Pattern: r.Host, Source: r.String(), Deny: r.Decision != rules.Allow}
		if addr, err := netip.ParseAddr(r.Host); err == nil && addr.Is6() {
			e.Pattern = "[" + r.Host + "]"
		}
		switch r.Decision {
		case rules.Allow:
			e.Protocols = protocols[r.Protocol]
		case rules.Prompt:
			e.Source += ", which asks"
		}
		entries = append(entries, e)
	}
	return entries
}
