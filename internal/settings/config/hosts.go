// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// CheckHosts returns a [*FlagError] for flags that open hosts beside one that closes the network,
// and for hosts that are denied beside the network of the host, where nothing is judged.
func (e *Effective) CheckHosts() error {
	flags := e.layers[len(e.layers)-1].values
	opened := slices.Concat(flags["network.allow"], e.hostGrants(flags["grants"]), flags["network.ask"])
	if mode := flags["network.mode"]; len(mode) > 0 && mode[0].Text == NetNone && len(opened) > 0 {
		return &FlagError{fmt.Sprintf("%s none and %s %s cannot be combined; use one of them",
			mode[0].Origin.File, opened[0].Origin.File, text.Word(opened[0].Text))}
	}
	for _, key := range []string{"network.deny", "network.mitm.rules"} {
		if set := e.Values[key].Settings; e.Values["network.mode"].Text() == NetHost && len(set) > 0 {
			return &FlagError{fmt.Sprintf("%s (%s) cannot be enforced with the network of the host; set network.mode to none or full, or remove it", key, set[0].Origin.Place())}
		}
	}
	return nil
}

// hostGrants returns those of some grants that are for hosts, and hold.
func (e *Effective) hostGrants(set []Setting) []Setting {
	held := e.Values["grants"].Texts()
	return slices.DeleteFunc(slices.Clone(set), func(s Setting) bool {
		return grants.Hosts(s.Text) == nil || !slices.Contains(held, s.Text)
	})
}

// boundHosts applies the ceiling to grants of hosts, before they mean a network: that on grants, on
// hosts and on the network. A grant opens all of its hosts or none.
func (e *Effective) boundHosts() error {
	return e.filter("grants", func(g Setting) (string, error) {
		var over *CeilingError
		if grants.Hosts(g.Text) == nil || !errors.As(e.Permits([]string{"grant:" + g.Text}), &over) {
			return "", nil
		}
		return notAllowed(over.By), &CeilingError{g, over.Key, over.By}
	})
}

// openHosts adds the hosts of grants to those that are allowed. The ceiling has bounded the grants.
func (e *Effective) openHosts() {
	v := e.Values["network.allow"]
	for _, g := range e.hostGrants(e.Values["grants"].Settings) {
		if !e.names("grants", g) {
			continue
		}
		g.Origin.Grant = g.Text
		for _, host := range grants.Hosts(g.Text) {
			v.Settings = append(v.Settings, Setting{host, g.Origin})
		}
		e.Values["network.allow"] = v
	}
}

// impliedMode is the mode of a source that has hosts and no mode: they mean the managed network.
// Hosts that are denied say nothing of the kind, except in place of the network of the host, where
// nothing could be denied; nor does a flag that asks where the network was turned off. Grants of hosts
// have nothing to add where the network of the host holds.
func (e *Effective) impliedMode(s source, holds Setting, reads bool) []Setting {
	hosts := s.values["network.allow"]
	if s.kind == Flags && holds.Text == NetHost {
		hosts = slices.Concat(hosts, s.values["network.deny"])
	}
	if s.kind == Flags && (holds.Text != NetNone || holds.Origin.Layer == BuiltIn) {
		hosts = slices.Concat(hosts, s.values["network.ask"])
	}
	if holds.Text == NetNone {
		hosts = slices.Concat(hosts, e.hostGrants(s.values["grants"]))
	}
	if len(hosts) == 0 {
		return nil
	}
	return []Setting{{e.proxied(reads), hosts[0].Origin}}
}

// proxied is the mode of the managed network where no word says which: full, unless the settings said
// limited. Full was not said then, so a ceiling of limited holds without an error.
func (e *Effective) proxied(reads bool) string {
	if reads {
		return NetLimited
	}
	for _, m := range e.config.managed {
		if by := m.values["network.mode"]; len(by) > 0 && by[0].Text == NetLimited {
			return NetLimited
		}
	}
	return NetFull
}

// OnlyNamed reports whether a layer has turned the network off, and a later one, such as a flag, named hosts
// all the same: no other host is open then, whatever settings and rules allow elsewhere.
func (e *Effective) OnlyNamed() bool { return e.named != nil }

// noteAsk says that a flag has nothing to ask about.
func (e *Effective) noteAsk() {
	asks := e.layers[len(e.layers)-1].values["network.ask"]
	if mode := e.Values["network.mode"]; len(asks) > 0 && mode.Text() == NetNone {
		e.Notes = append(e.Notes,
			fmt.Sprintf("%s asks about no host, because the network is off (%s); choose the managed network as well", asks[0].Origin.File, mode.Settings[0].Origin.Place()))
	}
}

// names reports whether an element of a list counts where only what was named is open.
func (e *Effective) names(key string, s Setting) bool {
	said := func(from source) bool {
		return slices.ContainsFunc(from.values[key], func(o Setting) bool { return o.Text == s.Text })
	}
	return e.named == nil || slices.ContainsFunc(e.named, said)
}

// onlyNamed cuts the hosts that lower layers allow, where these have turned the network off.
func (e *Effective) onlyNamed() {
	_ = e.filter("network.allow", func(s Setting) (string, error) { // none is an error
		if e.names("network.allow", s) {
			return "", nil
		}
		return "the network is off there, and " + e.Values["network.mode"].Settings[0].Origin.File +
			" opens no more than it names", nil
	})
}
