// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package netaccess serves the way of one command to the network: the socket that the launch has
// made in the command's own network, the proxy that answers there, and what it refused.
//
// The package decides nothing: hosts are judged by the policy of the command, by package network.
// What the proxy refuses becomes denials, each with the flag that allows it.
package netaccess

import (
	"net"
	"net/netip"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// granted is the source of entries that grants of a sandbox policy make.
const granted = "granted"

// Policy returns which hosts a command reaches: what Spec.Network says and, beside that, the hosts
// that Spec.Policy grants. An entry that denies takes precedence over a grant.
func Policy(spec *executor.Spec) (*network.Policy, error) {
	var entries []network.Entry
	for _, h := range spec.Policy.Hosts() {
		entries = append(entries, network.Entry{Pattern: pattern(h), Source: granted})
	}
	if spec.Network == nil {
		return network.New(network.Config{Mode: network.Full, Entries: entries, HostAddrs: HostAddrs()})
	}
	return spec.Network.Policy().With(entries...)
}

// pattern writes a host so that it can be parsed: an IPv6 address has brackets.
func pattern(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() {
		return "[" + host + "]"
	}
	return host
}

// HostAddrs returns the addresses of this machine's interfaces. It is empty where they cannot be
// read.
func HostAddrs() []netip.Addr {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, prefix.Addr().Unmap())
		}
	}
	return out
}

// rule says for people what refused a request.
func rule(d network.Decision) string {
	switch d.Reason {
	case network.Denied:
		if d.Entry == nil {
			return "deny"
		}
		text := "deny " + d.Entry.Pattern
		if d.Entry.Source != "" {
			text += " (" + d.Entry.Source + ")"
		}
		return text
	case network.NotAllowed:
		return "network=" + sandbox.NetworkProxy.String()
	case network.NotAllowedLocal:
		return "protected address"
	case network.CredentialMisuse, network.MITMHookDenied:
		if d.Entry != nil {
			return d.Entry.Pattern
		}
	case network.MethodNotAllowed, network.MITMRequired:
		return "network.mode=limited"
	}
	return string(d.Reason)
}
