// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// hosts returns which hosts the command reaches through the proxy, or nil where it has none. The
// rules may be nil; if they did not load, nothing runs, and the Runner says why.
func (o *Options) hosts(e *config.Effective, set *rules.Set) (*network.Policy, error) {
	proxied, loaded := o.networkOf() == sandbox.NetworkProxy, set.Err() == nil
	if !loaded || o.networkOf() == sandbox.NetworkHost && !slices.ContainsFunc(o.AskFor, isHost) {
		return nil, nil
	}
	c, err := Config(e, set)
	if err != nil {
		return nil, explain.NewError("%v", err)
	}
	if c.Upstream, err = e.Upstream(); err != nil && (proxied || slices.ContainsFunc(o.AskFor, isHost)) {
		return nil, explain.NewError("%v", err)
	}
	broken := err != nil // nothing can be reached, so a run without a network goes on
	if !proxied {        // what is approved gets a proxy, and nothing else is open there
		c.Mode = network.Full
		c.Entries = slices.DeleteFunc(c.Entries, func(entry network.Entry) bool { return !entry.Deny })
		if broken {
			c.Mode = network.None
		}
		if len(c.Entries) == 0 && len(c.Rules) == 0 && c.Upstream == nil && !broken &&
			!slices.ContainsFunc(o.AskFor, isHost) {
			return nil, nil // what is approved after a failure is open without a policy, too
		}
	}
	c.Rules = o.expand(c.Rules)
	if o.secrets != nil {
		Rewrite(&c, e, o.secrets)
	}
	if c.Inspector != nil {
		if err := Trusted(e); err != nil {
			return nil, err
		}
	}
	c.IsHostAddr = access.IsHostAddr
	p, err := network.New(c)
	if err != nil {
		return nil, explain.NewError("%v", err)
	}
	return p, nil
}

// AskOnTerminal has a person be asked about hosts that no entry names, where the network is managed, the
// program has a terminal of its own, and nothing says otherwise: under the approval policy on-request.
func (o *Options) AskOnTerminal(e *config.Effective, own bool) {
	const key = "network.ask"
	said := e.Values[key].Settings
	if own && o.networkOf() == sandbox.NetworkProxy && e.Approval() == approval.OnRequest &&
		len(said) == 1 && said[0].Origin.Layer == config.BuiltIn {
		e.Values[key] = config.Value{Settings: []config.Setting{{Text: "true", Origin: said[0].Origin}}}
	}
}

// AsksMeanwhile reports whether a person may be asked while the command runs: about hosts or writes.
func (o *Options) AsksMeanwhile(e *config.Effective) bool {
	return e.Approval() != approval.Never && (o.Cmd.AskWrites && o.mode() != config.FullAccess ||
		o.networkOf() == sandbox.NetworkProxy && e.Values["network.ask"].Text() == "true")
}

// isHost reports whether a word of --ask-for is a host and not a path.
func isHost(word string) bool {
	return !strings.Contains(word, "/") && !strings.HasPrefix(word, ".") && !strings.HasPrefix(word, "~")
}

// askForHost returns the grant for "host" or "host:port"; the port is 443 where it is left out.
func askForHost(word string) (sandbox.Grant, error) {
	host, port, err := network.ParseAuthority(word, 443)
	if err != nil {
		return sandbox.Grant{}, explain.NewError("--ask-for: %v; for a path, write ./%s", err,
			explain.ShellWord(word))
	}
	g := sandbox.Grant{Addr: net.JoinHostPort(host.String(), strconv.Itoa(int(port)))}
	if len(sandbox.ReadOnly().With(g).Hosts()) == 0 { // an approval opens no way to this machine
		return sandbox.Grant{}, explain.NewError("--ask-for: %s is on this machine; use --allow-host %s",
			text.Word(word), explain.ShellWord(g.Addr))
	}
	return g, nil
}
