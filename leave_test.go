// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestLeavingNetwork: what is said about hosts stays for a command that leaves the sandbox, or the question names that it
// ends; a rule, which asks nothing, ends nothing.
func TestLeavingNetwork(t *testing.T) {
	allow := []network.Entry{{Pattern: "a.example.com"}}
	deny := append(slices.Clone(allow), network.Entry{Pattern: "b.example.com", Deny: true})
	const leads = `prefix_rule(["x"], sandbox = "outside")`
	both := []string{approval.Outside, approval.Network}
	for _, test := range []struct {
		name  string
		net   sandbox.Network
		hosts *network.Config
		rules string
		escalate,
		review bool
		asked []string
		mode  sandbox.Mode
	}{
		{"off", sandbox.NetworkNone, nil, "", true, false, []string{approval.Outside}, sandbox.Full},
		{"off, by a rule", sandbox.NetworkNone, nil, leads, false, false, nil, sandbox.Full},
		{"listed", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: allow}, "", true, false, both, sandbox.Full},
		{"listed, by a rule", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: allow}, leads, false, false, nil, sandbox.Managed},
		{"listed, by a rule that is reviewed", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: allow}, leads, false, true, []string{}, sandbox.Managed},
		{"limited", sandbox.NetworkProxy, &network.Config{Mode: network.Limited, Entries: allow}, "", true, false, both, sandbox.Full},
		{"limited, by a rule", sandbox.NetworkProxy, &network.Config{Mode: network.Limited, Entries: allow}, leads, false, false, nil, sandbox.Managed},
		{"denied", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: deny}, "", true, false, nil, sandbox.Managed},
		{"denied, by a rule", sandbox.NetworkProxy, &network.Config{Mode: network.Full, Entries: deny}, leads, false, false, nil, sandbox.Managed},
		{"denied, and off", sandbox.NetworkNone, &network.Config{Mode: network.Full, Entries: deny}, "", true, false, nil, sandbox.Managed},
		{"denied, and off, by a rule", sandbox.NetworkNone, &network.Config{Mode: network.Full, Entries: deny}, leads, false, false, nil, sandbox.Managed},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ran sandbox.Policy
			var asked []string
			r, _ := fakeRunner(nil, func(spec *executor.Spec, _ *fakeProcess) { ran = spec.Policy })
			defer r.Close()
			r.Policy = sandbox.WorkspaceWrite().WithNetwork(test.net)
			r.Rules = rules.Load(rules.Host{}, rules.Source{Name: "/r", Text: []byte(test.rules)})
			if test.hosts != nil {
				p, err := network.New(*test.hosts)
				if err != nil {
					t.Fatal(err)
				}
				r.Network = p
			}
			r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
				asked = append([]string{}, q.Requires...)
				return approval.Decision{Answer: approval.Approved}, nil
			})
			if test.review {
				r.Reviewer = r.Approver
			}
			if _, err := r.Run(t.Context(), &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: test.escalate}); err != nil {
				t.Fatal(err)
			}
			kept := ran.Mode() == sandbox.Full || ran.Network() == test.net
			if ran.Mode() != test.mode || !kept || !slices.Equal(asked, test.asked) || (asked == nil) != (test.asked == nil) {
				t.Errorf("asked %q, ran under %v; want %q", asked, ran, test.asked)
			}
		})
	}
}

// TestHostDeniedMeanwhile: a host that is denied while the question is open, or after leaving was approved for the
// session, keeps the command in the sandbox.
func TestHostDeniedMeanwhile(t *testing.T) {
	hosts, err := network.New(network.Config{Mode: network.Full})
	if err != nil {
		t.Fatal(err)
	}
	var ran []sandbox.Mode
	r, _ := fakeRunner(nil, func(spec *executor.Spec, _ *fakeProcess) { ran = append(ran, spec.Policy.Mode()) })
	defer r.Close()
	r.Policy, r.Network = sandbox.WorkspaceWrite(), hosts
	denied := false
	r.Approver = approval.Func(func(_ context.Context, q *approval.Request) (approval.Decision, error) {
		if denied {
			if err := r.live.Update(func(p *network.Policy) (*network.Policy, error) {
				return p.With(network.Entry{Pattern: "b.example.com", Deny: true})
			}); err != nil {
				return approval.Decision{}, err
			}
		}
		return approval.Decision{Answer: approval.ApprovedForSession}, nil
	})
	c := &Cmd{Args: []string{"x"}, Dir: "/w", Unsandboxed: true}
	if _, err := r.Run(t.Context(), c); err != nil || !slices.Equal(ran, []sandbox.Mode{sandbox.Full}) {
		t.Fatalf("%v, %v", ran, err)
	}
	denied = true
	other := &Cmd{Args: []string{"y"}, Dir: "/w", Unsandboxed: true}
	if _, err := r.Run(t.Context(), other); !errors.Is(err, ErrForbidden) || len(ran) != 1 {
		t.Errorf("a host was denied while the question was open: %v, %v", ran, err)
	}
	if _, err := r.Run(t.Context(), c); err != nil || !slices.Equal(ran, []sandbox.Mode{sandbox.Full, sandbox.Managed}) {
		t.Errorf("a host was denied after the session's approval: %v, %v", ran, err)
	}
}
