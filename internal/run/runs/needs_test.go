// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestCheckName(t *testing.T) {
	for _, test := range []struct {
		name, value string
		ok          bool
	}{
		{"letters", "web", true}, {"all kinds", "Web-2_b.x", true}, {"hyphen first", "-x", true}, {"64 letters", strings.Repeat("x", 64), true},
		{"empty", "", false}, {"65 letters", strings.Repeat("x", 65), false}, {"dot first", ".x", false}, {"dots", "..", false},
		{"slash", "a/b", false}, {"NUL", "a\x00", false}, {"line", "a\n", false}, {"space", "a b", false}, {"other letters", "wéb", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := CheckName(test.value); (err == nil) != test.ok {
				t.Errorf("%q: %v", test.value, err)
			}
		})
	}
}

// bound returns the workspace preset in /w with more entries.
func bound(entries ...sandbox.Entry) sandbox.Policy {
	return sandbox.WorkspaceWrite().WithEntries(entries...).Bind(sandbox.Places{Dir: "/w", SlashTmp: "/tmp"})
}

// TestRefused: a run joins a sandbox only with what the run that has opened it has, or less.
func TestRefused(t *testing.T) {
	secret := sandbox.PathEntry("/secret", sandbox.LevelDeny)
	own := &needs{
		workspace: "/w", policy: bound(sandbox.PathEntry("/data", sandbox.LevelWrite),
			secret).With(sandbox.Grant{Name: "git"}),
		openings: []string{"--allow unix"},
	}
	with := func(f func(n *needs)) *needs {
		n := *own
		f(&n)
		return &n
	}
	for _, test := range []struct {
		name string
		asks *needs
		want string // in the error; empty for none
	}{
		{"same", own, ""},
		{"fewer grants and openings", with(func(n *needs) { n.policy, n.openings = bound(secret), nil }), ""},
		{"read only", with(func(n *needs) {
			n.policy = sandbox.ReadOnly().WithEntries(secret).Bind(sandbox.Places{Dir: "/w"})
		}), ""},
		{"another workspace", with(func(n *needs) { n.workspace = "/v" }), "its workspace is /w, and that of this run is /v; use another name"},
		{"another network", with(func(n *needs) { n.policy = n.policy.WithNetwork(sandbox.NetworkHost) }),
			"its network is none, and that of this run is host; use --net none"},
		{"every file", with(func(n *needs) { n.policy = sandbox.FullAccess().WithNetwork(sandbox.NetworkNone) }), "this run may write /,"},
		{"writes more", with(func(n *needs) { n.policy = n.policy.WithEntries(sandbox.PathEntry("/srv", sandbox.LevelWrite)) }),
			"this run may write /srv, and the run that started the sandbox may not; leave that out"},
		{"denies less", with(func(n *needs) { n.policy = bound() }), "this run may read /secret,"},
		{"another grant", with(func(n *needs) { n.policy = n.policy.With(sandbox.Grant{Name: "docker"}) }), "this run has --grant docker, which"},
		{"a stage", with(func(n *needs) { n.stage = new(executor.Staging) }),
			"this run has --stage, which the run that started the sandbox did not have; leave that out"},
		{"another opening", with(func(n *needs) { n.openings = []string{"--allow unix", "--allow userns"} }),
			"this run has --allow userns, which the run that started the sandbox did not have; leave that out"},
	} {
		t.Run(test.name, func(t *testing.T) {
			no := refused("n", own, test.asks)
			switch {
			case test.want == "" && no != nil:
				t.Error(no)
			case test.want != "" && (no == nil ||
				!strings.HasPrefix(no.Error(), "cannot join the sandbox n: "+test.want)):
				t.Errorf("%v, want %q", no, test.want)
			}
		})
	}
	own.policy = bound(sandbox.GlobEntry("**/.env"))
	if no := refused("n", own, with(func(n *needs) { n.policy = bound() })); no == nil ||
		!strings.Contains(no.Error(), "denies less") {
		t.Errorf("without a pattern: %v", no)
	}
}

// TestNeeds: what a run asks of a named sandbox is all that it opens, and what has no named one is refused.
func TestNeeds(t *testing.T) {
	workspace := sandbox.WorkspaceWrite()
	for _, test := range []struct {
		name   string
		policy sandbox.Policy
		cmd    sallyport.Cmd
		want   string // of its openings, or in the error
	}{
		{"nothing", workspace, sallyport.Cmd{ProtectHardLinks: true, Tmp: "private"}, "[]"},
		{"openings", workspace, sallyport.Cmd{Allow: []string{"unix"}, Publish: []network.Publish{{Port: 80}}, Tmp: "host"},
			"[--allow unix --publish 80 --tmp host no --protect-hard-links]"},
		{"no sandbox", sandbox.FullAccess(), sallyport.Cmd{}, "this run builds no sandbox"},
		{"a managed network", workspace.WithNetwork(sandbox.NetworkProxy), sallyport.Cmd{}, "needs a managed network in a named sandbox"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.cmd.Dir = t.TempDir()
			test.cmd.AskFor = []sandbox.Grant{{Name: "git"}}
			n, err := new(Table).needs(t.Context(), "n",
				&Prepared{Runner: &sallyport.Runner{Policy: test.policy}, Cmd: &test.cmd})
			switch {
			case err != nil && !strings.Contains(err.Error(), test.want):
				t.Errorf("%v, want %s", err, test.want)
			case err == nil && (fmt.Sprint(n.openings) != test.want ||
				!slices.Equal(n.policy.Named(), []string{"git"})):
				t.Errorf("%q, %v, want %s", n.openings, n.policy.Named(), test.want)
			}
		})
	}
}

// TestRefusedStage: all runs of a sandbox have its stage.
func TestRefusedStage(t *testing.T) {
	staging := func(name string) *executor.Staging { return &executor.Staging{Name: name} }
	for _, test := range []struct {
		name      string
		own, asks *executor.Staging
		ok        bool
	}{
		{"none", nil, nil, true}, {"of a staged sandbox", staging(""), nil, true},
		{"the same new one", staging(""), staging(""), true},
		{"the same name", staging("a"), staging("a"), true}, {"no name", staging("a"), staging(""), true},
		{"another name", staging("a"), staging("b"), false},
		{"a name beside a new one", staging(""), staging("a"), false},
		{"in a sandbox without one", nil, staging(""), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			own, asks := &needs{policy: bound(), stage: test.own}, &needs{policy: bound(), stage: test.asks}
			if err := refused("n", own, asks); (err == nil) != test.ok {
				t.Error(err)
			}
		})
	}
}
