// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/hostgrants"
	"github.com/sallyport-dev/sallyport/internal/printable"
)

// CheckHosts returns a [*FlagError] for flags that open hosts beside one that closes the network,
// and for hosts that are denied beside the network of the host, where nothing is judged.
func (e *Effective) CheckHosts() error {
	flags := e.layers[len(e.layers)-1].values
	opened := slices.Concat(flags["network.allow"], e.hostGrants(flags["grants"]), flags["network.ask"])
	if mode := flags["network.mode"]; len(mode) > 0 && mode[0].Text == NetNone && len(opened) > 0 {
		return &FlagError{fmt.Sprintf("%s none and %s %s cannot be combined; use one of them", mode[0].Origin.File, opened[0].Origin.File, printable.Word(opened[0].Text))}
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
		return hostgrants.Hosts(s.Text) == nil || !slices.Contains(held, s.Text)
	})
}

// boundHosts applies the ceiling to grants of hosts, before they mean a network: that on grants, on
// hosts and on the network. A grant opens all of its hosts or none.
func (e *Effective) boundHosts() error {
	v := e.Values["grants"]
	for _, g := range e.hostGrants(v.Settings) {
		var over *CeilingError
		switch {
		case !errors.As(e.Permits([]string{"grant:" + g.Text}), &over):
			continue
		case g.Origin.Layer == Flags:
			return &CeilingError{g, over.Key, over.By}
		}
		v.Settings = slices.DeleteFunc(slices.Clone(v.Settings), func(s Setting) bool { return s == g })
		e.cut(&v, "grants", g, "the managed configuration does not allow it ("+over.By.Place()+")")
		e.Values["grants"] = v
	}
	return nil
}

// openHosts adds the hosts of grants to those that are allowed. The ceiling has bounded the grants.
func (e *Effective) openHosts() {
	v := e.Values["network.allow"]
	for _, g := range e.hostGrants(e.Values["grants"].Settings) {
		g.Origin.Grant = g.Text
		for _, host := range hostgrants.Hosts(g.Text) {
			v.Settings = append(v.Settings, Setting{host, g.Origin})
		}
		e.Values["network.allow"] = v
	}
}

// impliedMode is the mode of a source that has hosts and no mode: they mean the managed network.
// Hosts that files deny say nothing of the kind, and grants of hosts have nothing to add where the
// network of the host holds. Full was not said, so a ceiling of limited holds without an error.
func (e *Effective) impliedMode(s source, holds string) []Setting {
	hosts := s.values["network.allow"]
	if s.kind == Flags {
		hosts = slices.Concat(hosts, s.values["network.deny"], s.values["network.ask"])
	}
	if holds == NetNone {
		hosts = slices.Concat(hosts, e.hostGrants(s.values["grants"]))
	}
	if len(hosts) == 0 {
		return nil
	}
	mode := NetFull
	for _, m := range e.config.managed {
		if by := m.values["network.mode"]; len(by) > 0 && by[0].Text == NetLimited {
			mode = NetLimited
		}
	}
	return []Setting{{mode, hosts[0].Origin}}
}
