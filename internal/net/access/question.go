// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net"
	"strconv"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
)

// RuleProtocols are those that a rule about a host is for, by the words of rule files. Connections of
// programs that know of no proxy are led to it, and are no wider than what these programs could ask a
// proxy for.
var RuleProtocols = map[string][]network.Protocol{
	"http": {network.HTTP}, "https": {network.HTTPSConnect, network.TransparentTCP},
	"socks5_tcp": {network.SOCKS5TCP, network.TransparentTCP}, "socks5_udp": {network.SOCKS5UDP},
}

// word returns the word of rule files for the protocol of a request.
func word(r network.Request) string {
	const httpsPort = 443
	switch {
	case r.Protocol == network.HTTP:
		return "http"
	case r.Protocol == network.SOCKS5UDP:
		return "socks5_udp"
	case r.Protocol == network.HTTPSConnect, r.Protocol == network.TransparentTCP && r.Port == httpsPort:
		return "https"
	}
	return "socks5_tcp"
}

// HostRequired is what a request needs, in the words of approval.Request.
func HostRequired(r network.Request) string {
	return "host:" + net.JoinHostPort(r.Host.String(), strconv.Itoa(int(r.Port)))
}

// HostRemembered is what an offer for good needs, in these words: the host on every port.
func HostRemembered(r network.Request) string { return "host:" + r.Host.String() }

// HostRefusal says for people and models that an answer has refused a host. What an approver says may be
// long: 900 tokens of it are kept.
func HostRefusal(r network.Request, d approval.Decision) string {
	const tokens = 900
	return "network access to " + HostRequired(r)[len("host:"):] + ": " +
		text.TruncateMiddle(d.Refusal(), tokens)
}

// FillHostQuestion makes a question one about a host. With remember it offers to remember the host, as
// allowed or as denied. The answer for the session counts for all commands in its environment, on this
// port.
func FillHostQuestion(q *approval.Request, r network.Request, remember bool) {
	q.Reason = "no entry of the network policy allows " +
		net.JoinHostPort(r.Host.String(), strconv.Itoa(int(r.Port)))
	q.Requires, q.Runs = []string{HostRequired(r)}, 0
	if q.Key == "" {
		return // every question is reviewed anew
	}
	q.Key = "host\x00" + q.Environment
	if r.Protocol == network.SOCKS5UDP {
		q.Key += "\x00udp"
	}
	if remember {
		for _, deny := range []bool{false, true} {
			q.Offers = append(q.Offers, approval.Offer{Answer: approval.ApprovedHost, Host: r.Host.String(),
				Protocol: word(r), Deny: deny})
		}
	}
}

// HostAmendment returns what an answer that remembers a host adds: to rule files, and to the policy of
// commands that run. A denial counts for every protocol.
func HostAmendment(r network.Request, deny bool) (rules.NetworkRule, network.Entry) {
	protocol := word(r)
	rule := rules.NetworkRule{Host: r.Host.String(), Protocol: protocol, Decision: rules.Allow,
		Justification: "Allow " + protocol + " access to " + r.Host.String()}
	entry := network.Entry{Pattern: r.Host.String(), Source: "approved"}
	if addr, ok := r.Host.Addr(); ok && addr.Is6() {
		entry.Pattern = "[" + addr.String() + "]"
	}
	if deny {
		rule.Decision, rule.Justification = rules.Forbid, "Deny "+protocol+" access to "+r.Host.String()
		entry.Deny, entry.Source = true, "denied by an answer"
		return rule, entry
	}
	entry.Protocols = RuleProtocols[protocol]
	return rule, entry
}
