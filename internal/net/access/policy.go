// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access serves the way of one command to the network: the socket that the launch has
// made in the command's own network, the proxy that answers there, and what it refused.
//
// The package decides nothing: hosts are judged by the policy of the command, by package network.
// What the proxy refuses becomes denials, each with the flag that allows it.
//
// [SyntheticNames] answers the questions of a command about names and asks no server: a name that
// the policy may open gets an address that stands for it, and a connection to that address is one to
// the name. So names that the policy refuses never leave this machine.
//
// [HostQuestions] has hosts asked about that no entry of the policy names, while the command that
// wants to reach them runs. It asks about a host once, whatever number of connections wait for the
// answer, and keeps the answer for as long as the command runs.
package access

import (
	"net"
	"net/netip"
	"slices"

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
		return network.New(network.Config{Mode: network.Full, Entries: entries, IsHostAddr: IsHostAddr})
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

// IsHostAddr reports whether an address is one of this machine now, also of one that has come since a command
// was started. It sends nothing: for an address of its own, and for no other, a system chooses that very
// address to send from. Where that cannot be asked, the addresses of the interfaces count.
func IsHostAddr(addr netip.Addr) bool {
	const discard = 9 // a port, which is not asked for anything
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, discard)))
	if err == nil {
		local, err := netip.ParseAddrPort(conn.LocalAddr().String())
		_ = conn.Close()
		if err == nil {
			return local.Addr().Unmap() == addr.Unmap()
		}
	}
	list, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(list, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == addr.Unmap()
	})
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
