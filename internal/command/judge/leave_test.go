// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// hostPolicy returns a network policy.
func hostPolicy(t *testing.T, c network.Config) *network.Policy {
	t.Helper()
	p, err := network.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLeave: what leaving the sandbox requires by what is said about hosts and files; a rule, which
// names nothing, lifts no network policy.
func TestLeave(t *testing.T) {
	const outside, both = approval.Outside, approval.Outside + " " + approval.Network
	denial := network.Entry{Pattern: "a.b", Deny: true}
	allow := network.Entry{Pattern: "a.b"}
	rule := network.RequestRule{Name: "r", Hosts: []string{"a.b"}}
	set := load(t, "prefix_rule([\"npm\"], sandbox = \"outside\")")
	for _, test := range []struct {
		name    string
		net     sandbox.Network
		hosts   *network.Policy
		entries []sandbox.Entry
		want    string // what is required; "" for nothing that would help
	}{
		{"the network is off", sandbox.NetworkNone, nil, nil, outside},
		{"off, and grants would open hosts", sandbox.NetworkNone, hostPolicy(t, network.Config{Mode: network.Full}), nil, outside},
		{"off, and a host is denied", sandbox.NetworkNone, hostPolicy(t, network.Config{Mode: network.Full, Entries: []network.Entry{denial}}), nil, ""},
		{"off, and requests have rules", sandbox.NetworkNone, hostPolicy(t, network.Config{Mode: network.Full, Rules: []network.RequestRule{rule}}), nil, both},
		{"off, and what is granted is limited", sandbox.NetworkNone, hostPolicy(t, network.Config{Mode: network.Limited}), nil, both},
		{"off, and hosts are asked about", sandbox.NetworkNone, hostPolicy(t, network.Config{Mode: network.Full, Ask: true}), nil, both},
		{"the proxy without a policy", sandbox.NetworkProxy, nil, nil, both},
		{"the proxy", sandbox.NetworkProxy, hostPolicy(t, network.Config{Mode: network.Full, Entries: []network.Entry{allow}}), nil, both},
		{"limited", sandbox.NetworkProxy, hostPolicy(t, network.Config{Mode: network.Limited, Entries: []network.Entry{allow}}), nil, both},
		{"the proxy, and a host is denied", sandbox.NetworkProxy, hostPolicy(t, network.Config{Mode: network.Full, Entries: []network.Entry{allow, denial}}), nil, ""},
		{"the network of the host", sandbox.NetworkHost, nil, nil, outside},
		{"a file is denied", sandbox.NetworkNone, nil, []sandbox.Entry{sandbox.PathEntry("/x", sandbox.LevelDeny)}, ""},
		{"a file and a host are denied", sandbox.NetworkProxy, hostPolicy(t, network.Config{Entries: []network.Entry{denial}}), []sandbox.Entry{sandbox.GlobEntry("**/.env")}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := sandbox.WorkspaceWrite().WithNetwork(test.net).WithEntries(test.entries...).Bind(places)
			required := Leaving(p, test.hosts)
			if got := strings.Join(required, " "); got != test.want {
				t.Fatalf("requires %q, want %q", got, test.want)
			}
			q := Question{Place: PlaceOf(p), Denies: p.Denies(), Hosts: HostsOf(p, test.hosts), Rules: set}
			q.Command = []string{"cargo"}
			q.Want(true, false)
			asked := Judge(&q)
			if (asked.Answer == Ask) != (test.want != "") || asked.Answer == Ask &&
				!slices.Equal(asked.Requires(nil), required) || test.want == "" &&
				asked.Retry == RetryOutside {
				t.Errorf("the caller asks: %s, %v", textOf(asked), asked.Requires(nil))
			}
			q.Wish, q.Command = Stay, []string{"npm", "ci"}
			if ruled := Judge(&q); (ruled.Where == rules.Outside) != (test.want == outside) ||
				ruled.Answer != Skip {
				t.Errorf("a rule: %s, %v", textOf(ruled), ruled.Where)
			}
			q.Ceiling = true
			if ruled := Judge(&q); ruled.Where != rules.Unsaid {
				t.Errorf("a rule under a ceiling: %v", ruled.Where)
			}
			for _, given := range [][]string{nil, {outside}, {approval.Network},
				{outside, approval.Network}} {
				left, err := Outside(p, test.hosts, given)
				fits := test.want != "" && !slices.ContainsFunc(required,
					func(word string) bool { return !slices.Contains(given, word) })
				if (err == nil) != fits || fits && left.Mode() != sandbox.Full || !fits && !left.Equal(p) {
					t.Errorf("%v: %v, %v", given, left, err)
				}
			}
		})
	}
}

// TestWant: a caller that asks for grants as well gets to ask for them where the sandbox is not left.
func TestWant(t *testing.T) {
	for _, test := range []struct {
		q             Question
		leave, grants bool
		want          Wish
	}{
		{Question{}, false, false, Stay}, {Question{}, true, false, Leave}, {Question{}, false, true, More}, {Question{}, true, true, Leave},
		{Question{Denies: true}, true, true, More}, {Question{Hosts: DeniedHosts}, true, true, More}, {Question{Hosts: JudgedHosts}, true, true, Leave},
	} {
		if test.q.Want(test.leave, test.grants); test.q.Wish != test.want {
			t.Errorf("%+v: %v", test, test.q.Wish)
		}
	}
}
