// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestAcceptance: the rows of the peer's matrix that are the judge's.
func TestAcceptance(t *testing.T) {
	set := load(t, "prefix_rule([\"cat\"])\nprefix_rule([\"npm\"], sandbox = \"outside\")\nprefix_rule([\"tar\"], sandbox = \"read-only\")")
	noSandboxQuestion := approval.Granular{Rules: true}.Policy()
	for _, test := range []struct {
		name   string
		script string
		q      Question
		want   string
		wish   Wish // that has an effect
	}{
		{"B5 more permissions, and a rule that leads outside", "npm ci", Question{Wish: More}, "skip", Stay},
		{"B6 require_escalated, and an allow", "cat a", Question{Wish: Leave}, "ask: it asks to run outside the sandbox", Leave},
		{"B7 denied reads, require_escalated", "cargo test", Question{Wish: Leave, Denies: true}, "skip", Stay},
		{"B7 denied reads, and a rule that leads outside", "npm ci", Question{Denies: true}, "skip", Stay},
		{"B7 denied reads, more permissions", "cargo test", Question{Wish: More, Denies: true}, "ask: it asks for more than its sandbox allows", More},
		{"C1 full access, on-request", "touch /x", Question{Place: Full}, "skip", Stay},
		{"C2 full access, untrusted, echo", "echo x", Question{Place: Full, Approval: approval.Untrusted, SafeList: true}, "skip", Stay},
		{"C2 full access, untrusted, write", "git reset --hard", Question{Place: Full, Approval: approval.Untrusted, SafeList: true}, "ask: no rule allows `git reset --hard`, and it is not known to read only", Stay},
		{"C3 full access, never", "touch /x", Question{Place: Full, Approval: approval.Never}, "skip", Stay},
		{"C8 escalated safe command", "echo x", Question{Wish: Leave, SafeList: true}, "ask: it asks to run outside the sandbox", Leave},
		{"C8 granular without sandbox_approval", "echo x", Question{Wish: Leave, Approval: noSandboxQuestion, SafeList: true}, "forbid: " + SandboxOff, Leave},
		{"C9 a here-document with an allow", "PATH=/x cat <<EOF\nEOF\n", Question{Wish: Leave}, "ask: it asks to run outside the sandbox", Leave},
		{"C10 safe and not safe", "cat a && touch b", Question{Wish: Leave, SafeList: true}, "ask: it asks to run outside the sandbox", Leave},
		{"a rule narrows full access", "tar x; rm -f y", Question{Place: Full}, "skip", Stay},
		{"a rule narrows full access, and it asks for more", "tar x", Question{Place: Full, Wish: More}, "ask: it asks for more than its sandbox allows, although a rule says sandbox=read-only", More},
		{"a rule narrows, and it asks to leave", "tar x", Question{Wish: Leave}, "ask: it asks to run outside the sandbox, although a rule says sandbox=read-only", Leave},
		{"a rule narrows full access, and it asks to leave", "tar x", Question{Place: Full, Wish: Leave, Approval: approval.Never}, "forbid: " + NeverLeaves, Leave},
		{"a forced rm in CI", "rm -rf build", Question{Approval: approval.Never}, "skip", Stay},
		{"a forced rm in CI without a sandbox", "rm -rf build", Question{Approval: approval.Never, Place: Full}, "forbid: `/bin/bash -lc 'rm -rf build'` rejected: " + noForce, Stay},
	} {
		q := test.q
		q.Command, q.Rules = bash(test.script), set
		if d := Judge(&q); textOf(d) != test.want || d.Wish != test.wish {
			t.Errorf("%s: %s, wish %d; want %s, wish %d", test.name, textOf(d), d.Wish, test.want, test.wish)
		}
	}
}

// TestRuleNamed: a rule is named where it decides, and not where the caller's wish does.
func TestRuleNamed(t *testing.T) {
	set := load(t, "prefix_rule([\"tar\"], sandbox = \"read-only\")\nprefix_rule([\"git\"], \"prompt\")")
	for _, test := range []struct {
		script string
		q      Question
		line   int // 0 for none
	}{
		{"tar x", Question{}, 1},
		{"tar x", Question{Wish: Leave}, 0},
		{"tar x", Question{Wish: More}, 0},
		{"tar x; git push", Question{Wish: Leave}, 2},
		{"git push", Question{Approval: approval.Never, Wish: More}, 2},
		{"git push", Question{Approval: approval.Granular{Rules: true}.Policy(), Wish: Leave}, 0},
		{"ls", Question{}, 0},
	} {
		q := test.q
		q.Command, q.Rules = bash(test.script), set
		line, d := 0, Judge(&q)
		if d.Rule != nil {
			line = d.Rule.Line
		}
		if line != test.line {
			t.Errorf("%q, wish %d: the rule in line %d, want %d", test.script, q.Wish, line, test.line)
		}
	}
}

// TestPlaceOf: a policy under which every file can be changed protects none.
func TestPlaceOf(t *testing.T) {
	custom, err := sandbox.New(sandbox.External, sandbox.NetworkHost)
	if err != nil {
		t.Fatal(err)
	}
	for want, policies := range map[Place][]sandbox.Policy{
		Restricted:   {{}, sandbox.ReadOnly(), sandbox.WorkspaceWrite(), sandbox.WorkspaceWrite("/home")},
		Unrestricted: {sandbox.FullAccess().WithNetwork(sandbox.NetworkNone), sandbox.FullAccess().WithEntries(sandbox.PathEntry("/secret", sandbox.LevelDeny))},
		External:     {custom},
		Full:         {sandbox.FullAccess()},
	} {
		for _, p := range policies {
			if got := PlaceOf(p.Bind(places)); got != want {
				t.Errorf("%v: %v, want %v", p, got, want)
			}
		}
	}
}
