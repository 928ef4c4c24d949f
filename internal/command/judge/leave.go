// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"slices"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Hosts is what leaving the sandbox would lift beside files: outside of it a command has the network of
// its machine, where no host is judged. The zero Hosts is NoHosts.
type Hosts uint8

// What is said about hosts.
const (
	// nothing: the network is off, or is that of the machine. Leaving means files and network
	NoHosts Hosts = iota
	// they are listed, limited, asked about or given credentials: a question names that this ends, and
	// no rule ends it
	JudgedHosts
	DeniedHosts // some are denied for good: the sandbox is not left
)

// HostsOf returns what a policy and the network policy beside it, which may be nil, say about hosts.
func HostsOf(p sandbox.Policy, n *network.Policy) Hosts {
	switch {
	case p.Network() == sandbox.NetworkHost:
		return NoHosts
	case n.Denies():
		return DeniedHosts
	case p.Network() == sandbox.NetworkProxy, n.Judges():
		return JudgedHosts
	}
	return NoHosts
}

// leaving returns what a question about leaving the sandbox requires; nil where the sandbox is not left.
func (h Hosts) leaving() []string {
	switch h {
	case NoHosts:
		return []string{approval.Outside}
	case JudgedHosts:
		return []string{approval.Outside, approval.Network}
	}
	return nil
}

// Leaving is what a question has to require so that a command with a policy may run outside of the sandbox;
// nil where it may not.
func Leaving(p sandbox.Policy, n *network.Policy) []string {
	if p.Denies() {
		return nil
	}
	return HostsOf(p, n).leaving()
}

var errStays = errors.New("the command cannot leave the sandbox: hosts or files are denied, or hosts are judged, and nothing says that this ends")

// Again is the reason for a question whether a command that failed may be run again, which requires that.
func Again(required []string) string {
	if slices.Contains(required, approval.Outside) {
		return "it failed, and was denied what no grant allows; the second run would be without the sandbox"
	}
	return "it failed, and was denied what it may need"
}

// Outside returns the policy for a command that may run outside of the sandbox, by a rule or by an
// approval of what is required. It is an error where p and n bar that, or lift what is not required,
// also where they changed since.
func Outside(p sandbox.Policy, n *network.Policy, required []string) (sandbox.Policy, error) {
	needs := Leaving(p, n)
	if needs == nil || slices.ContainsFunc(needs,
		func(word string) bool { return !slices.Contains(required, word) }) {
		return p, errStays
	}
	return sandbox.FullAccess(), nil
}

// Want sets the wish of a caller that asks to leave the sandbox, for grants, or for neither.
func (q *Question) Want(leave, grants bool) {
	switch {
	case leave && !(grants && q.bars()):
		q.Wish = Leave
	case grants:
		q.Wish = More
	}
}

// bars reports whether something is denied for good.
func (q *Question) bars() bool { return q.Denies || q.Hosts == DeniedHosts }

var errJudged = errors.New("its hosts are judged or denied, and a rule does not end that")

// lead keeps rules from leading further than they may.
func (q *Question) lead(d *Decision) {
	if d.Where != rules.Outside || !q.Ceiling && !q.Denies && q.Hosts == NoHosts {
		return
	}
	if d.Where = rules.Unsaid; q.Hosts != NoHosts {
		d.Held = errJudged
	}
}

// Requires is what a question about a command has to require for the wish of its caller, who may ask
// for grants.
func (d *Decision) Requires(grants []sandbox.Grant) []string {
	switch d.Wish {
	case Leave:
		return d.hosts.leaving()
	case More:
		return approval.Requirements(false, grants)
	case Stay:
	}
	return nil
}
