// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/net/intercept"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
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
// nothing is open. Rules open nothing beyond the ceiling. IsHostAddr and Upstream are left to the caller.
func Config(e *config.Effective, set *rules.Set) (network.Config, error) {
	if err := set.Err(); err != nil {
		return network.Config{}, err
	}
	is := func(key string) bool { return e.Values[key].Text() == "true" }
	c := network.Config{
		Mode:         modes[e.Values["network.mode"].Text()], // None for the host's, and where nothing is set
		AllowPrivate: is("network.allow_private"), RequireSNI: is("network.require_sni"),
		LocalBinding: is("network.allow_local_binding"), Ask: is("network.ask"),
		PublicSuffix: intercept.IsPublicSuffix,
	}
	var err error
	if c.Rules, err = e.RequestRules(); err != nil {
		return network.Config{}, err
	}
	if c.Mode == network.Limited || len(c.Rules) > 0 && c.Mode != network.None {
		inspect(&c, e)
	}
	for _, list := range []string{"network.allow", "network.deny"} {
		for _, s := range e.Values[list].Settings {
			c.Entries = append(c.Entries, network.Entry{Pattern: s.Text, Deny: list == "network.deny",
				Source: s.Origin.Place()})
		}
	}
	for _, entry := range ruleEntries(set.Networks()) {
		if entry.Deny || !e.OnlyNamed() && e.Permits([]string{"host:" + entry.Pattern}) == nil {
			c.Entries = append(c.Entries, entry)
		}
	}
	return c, nil
}

// Rewrite has requests inside TLS changed. It does nothing where no request is judged.
func Rewrite(c *network.Config, e *config.Effective, r intercept.Rewriter) {
	if c.Mode == network.None {
		return
	}
	if c.Inspector == nil {
		inspect(c, e)
	}
	if by, ok := c.Inspector.(*intercept.Interceptor); ok {
		c.Inspector = by.With(r)
	}
}

// Trusted returns an error if commands can change a file with certificates by which servers are
// verified where TLS is opened: of the settings, and of variables of this process.
func Trusted(e *config.Effective) error {
	in := e.Reach()
	for _, name := range authorities(e) {
		if err := in.Decides("network.mitm.extra_ca", name); err != nil {
			return err
		}
	}
	for _, variable := range environ.TrustNames() {
		name := os.Getenv(variable)
		if name == "" {
			continue
		}
		name, err := filepath.Abs(name)
		if err == nil {
			err = in.Decides("the variable "+variable, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// authorities returns the files of certificates that settings name.
func authorities(e *config.Effective) []string {
	home, _ := os.UserHomeDir() // without one "~" is a name
	var extra []string
	for _, name := range e.Values["network.mitm.extra_ca"].Texts() {
		extra = append(extra, config.Expand(name, home))
	}
	return extra
}

// inspect has TLS opened, but for the hosts that the settings name.
func inspect(c *network.Config, e *config.Effective) {
	c.Inspector = intercept.Shared(authorities(e), os.Getenv)
	for _, s := range e.Values["network.mitm.exclude"].Settings {
		c.Uninspected = append(c.Uninspected, network.Entry{Pattern: s.Text, Source: s.Origin.Place()})
	}
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
			e.Protocols = access.RuleProtocols[r.Protocol]
		case rules.Prompt:
			e.Source += ", which asks"
		}
		entries = append(entries, e)
	}
	return entries
}
