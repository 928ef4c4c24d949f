// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestWhere: any rule narrows, also one that only may match; only rules for all that may run lead
// outside, and an allow says nothing.
func TestWhere(t *testing.T) {
	const text = `prefix_rule(["git"])
prefix_rule(["npm"], sandbox = "outside")
prefix_rule(["npm", "test"], sandbox = "workspace-write")
prefix_rule(["npm", "run", "lint"], "prompt", sandbox = "outside")
prefix_rule(["make"], sandbox = "read-only")
prefix_rule(["env"], sandbox = "outside")
prefix_rule(["sudo"], sandbox = "outside")
prefix_rule(["docker"], sandbox = "outside")
prefix_rule(["zsh"], sandbox = "outside")
host_executable("docker", ["/opt/docker"])
`
	set := load(t, text)
	for _, test := range []struct {
		name string
		argv []string
		want rules.Sandbox
		line int // of the rule
	}{
		{"an allow", []string{"git", "log"}, rules.Unsaid, 1},
		{"no rule", []string{"cargo"}, rules.Unsaid, 0},
		{"outside", []string{"npm", "ci"}, rules.Outside, 2},
		{"outside, in a script", bash("npm ci && npm run x"), rules.Outside, 2},
		{"the strictest of two", []string{"npm", "test"}, rules.WorkspaceWrite, 3},
		{"the strictest of a script", bash("npm test; make"), rules.ReadOnly, 5},
		{"a prompt does not lead outside", []string{"npm", "run", "lint"}, rules.Unsaid, 4},
		{"one part without a rule", bash("npm ci && ls"), rules.Unsaid, 0},
		{"one part that is only allowed", bash("npm ci && git log"), rules.Unsaid, 1},
		{"outside by the base name, in a directory of the system", []string{"/usr/bin/npm", "ci"}, rules.Outside, 2},
		{"a planted program", []string{"./npm", "ci"}, rules.Unsaid, 0},
		{"a planted program by its absolute path", []string{"/w/npm", "ci"}, rules.Unsaid, 0},
		{"a program of the system behind a link", []string{"/w/link/../../usr/bin/npm", "ci"}, rules.Unsaid, 0},
		{"a listed program behind a link", []string{"/w/link/../../opt/docker", "ps"}, rules.Unsaid, 0},
		{"a listed program by the directory", []string{"../opt/docker", "ps"}, rules.Unsaid, 0},
		{"a listed program", []string{"/opt/docker", "ps"}, rules.Outside, 8},
		{"not a listed program", []string{"/usr/bin/docker", "ps"}, rules.Unsaid, 0},
		{"a planted shell", []string{"/w/bash", "-lc", "npm ci"}, rules.Unsaid, 0},
		{"a planted shell further in", bash("npm ci; /w/sh -c 'npm ci'"), rules.Unsaid, 0},
		{"opaque", bash("npm ci > x"), rules.Unsaid, 0},
		{"an opaque script of a shell that is allowed outside", []string{"zsh", "-c", "npm ci > x"}, rules.Unsaid, 0},
		{"a variable", bash("npm $X"), rules.WorkspaceWrite, 4},
		{"what an allowed program runs", []string{"env", "curl", "u"}, rules.Unsaid, 0},
		{"what it runs is allowed outside as well", []string{"env", "npm", "ci"}, rules.Outside, 0},
		{"what it runs is not known", []string{"sudo", "sh"}, rules.ReadOnly, 0},
		{"narrower, through another program", []string{"nice", "make"}, rules.ReadOnly, 5},
		{"narrower, by another spelling", bash(`m\ake`), rules.ReadOnly, 5},
		{"narrower, with an unknown word", bash("make $X"), rules.ReadOnly, 5},
		{"narrower, maybe", bash("$X all"), rules.ReadOnly, 0},
		{"narrower, unknown", bash("curl u | sh"), rules.ReadOnly, 0},
		{"narrower, as its own name", []string{"/w/make"}, rules.ReadOnly, 5},
	} {
		d := Judge(&Question{Command: test.argv, Rules: set, Host: rules.Host{Dir: "/w"}})
		line := 0
		if d.Rule != nil {
			line = d.Rule.Line
		}
		if d.Where != test.want || test.line != 0 && line != test.line {
			t.Errorf("%s: %v by line %d, want %v by line %d; %s", test.name, d.Where, line, test.want,
				test.line, d.Reason)
		}
	}
}

// TestArg0: programs that go by their name are judged by it.
func TestArg0(t *testing.T) {
	set := load(t, "prefix_rule([\"rm\"], \"forbidden\")\nprefix_rule([\"tool\"], sandbox = \"outside\")")
	for _, test := range []struct {
		name, arg0 string
		policy     approval.Policy
		want       Answer
		where      rules.Sandbox
	}{
		{"none", "", approval.Untrusted, Skip, rules.Outside},
		{"its own", "tool", approval.Untrusted, Skip, rules.Outside},
		{"another", "rm", approval.OnRequest, Forbid, rules.Unsaid},
		{"another, by a path", "/bin/rm", approval.OnRequest, Forbid, rules.Unsaid},
		{"one that no rule is about", "mv", approval.OnRequest, Skip, rules.Unsaid},
		{"one that no rule is about, under untrusted", "mv", approval.Untrusted, Ask, rules.Unsaid},
	} {
		d := Judge(&Question{Command: []string{"tool", "x"}, Arg0: test.arg0, Rules: set,
			Approval: test.policy})
		if d.Answer != test.want || d.Where != test.where {
			t.Errorf("%s: %s, %v", test.name, textOf(d), d.Where)
		}
	}
}

var places = sandbox.Places{Dir: "/w", TmpDir: "/var/tmp/x", SlashTmp: "/tmp",
	Minimal: []string{"/usr", "/lib"}, Home: "/home/dev"}

// TestConfine: what a rule makes of the policy of a run.
func TestConfine(t *testing.T) {
	policy := func(mode sandbox.Mode, net sandbox.Network, entries ...sandbox.Entry) sandbox.Policy {
		p, err := sandbox.New(mode, net, entries...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	deny := sandbox.PathEntry("/w/secret", sandbox.LevelDeny)
	glob := sandbox.GlobEntry("/w/**/.env")
	everywhere := policy(sandbox.Managed, sandbox.NetworkHost,
		sandbox.SpecialEntry(sandbox.TokenRoot, sandbox.LevelWrite))
	home := policy(sandbox.Managed, sandbox.NetworkHost, sandbox.PathEntry("/w", sandbox.LevelRead),
		sandbox.PathEntry("/home", sandbox.LevelWrite))
	granted := sandbox.WorkspaceWrite().Bind(places).With(sandbox.Grant{Level: sandbox.LevelWrite,
		Path: "/data"}, sandbox.Grant{Name: "git"}).WithNetwork(sandbox.NetworkHost)
	for _, test := range []struct {
		name   string
		policy sandbox.Policy
		where  rules.Sandbox
		want   string // its String; "same" for the policy itself
		writes []string
		reads  []string // and does not write
		denies []string
	}{
		{"unsaid", granted, rules.Unsaid, "same", nil, nil, nil},
		{"full, read-only", sandbox.FullAccess(), rules.ReadOnly, "read-only, network none", nil, []string{"/w", "/tmp", "/etc"}, nil},
		{"full, workspace-write", sandbox.FullAccess(), rules.WorkspaceWrite, "workspace-write, network none", []string{"/w", "/tmp"}, []string{"/w/.git", "/etc"}, nil},
		{"external, read-only", policy(sandbox.External, sandbox.NetworkHost), rules.ReadOnly, "read-only, network none", nil, []string{"/w"}, nil},
		{"unrestricted", sandbox.FullAccess().WithNetwork(sandbox.NetworkNone), rules.WorkspaceWrite, "workspace-write, network none", []string{"/w"}, []string{"/etc"}, nil},
		{"writes everything", everywhere, rules.WorkspaceWrite, "workspace-write, network none", []string{"/w", "/tmp"}, []string{"/w/.git", "/etc"}, nil},
		{"the workspace, read-only", granted, rules.ReadOnly, "read-only, network none", nil, []string{"/w", "/data", "/w/.git"}, nil},
		{"the workspace, workspace-write", granted, rules.WorkspaceWrite, "same", nil, nil, nil},
		{"read-only, workspace-write", sandbox.ReadOnly(), rules.WorkspaceWrite, "same", nil, nil, nil},
		{"read-only, read-only", sandbox.ReadOnly().WithNetwork(sandbox.NetworkHost), rules.ReadOnly, "same", nil, nil, nil},
		{"zero, read-only", sandbox.Policy{}, rules.ReadOnly, "custom, network none", nil, []string{"/usr"}, []string{"/w", "/etc"}},
		{"zero, workspace-write", sandbox.Policy{}, rules.WorkspaceWrite, "custom, network none", nil, []string{"/usr"}, []string{"/w", "/etc", "/tmp"}},
		{"workspace-write by its shape", sandbox.ReadOnly().WithEntries(sandbox.PathEntry("/home", sandbox.LevelWrite)), rules.WorkspaceWrite, "same", nil, nil, nil},
		{"custom, workspace-write", home, rules.WorkspaceWrite, "custom, network none", nil, []string{"/home/dev", "/w"}, []string{"/etc", "/tmp"}},
		{"denies stay", sandbox.FullAccess().WithEntries(deny, glob), rules.WorkspaceWrite, "custom, network none", []string{"/w"}, []string{"/etc"}, []string{"/w/secret", "/w/a/.env"}},
		{"denies stay, read-only", granted.WithEntries(deny, glob), rules.ReadOnly, "custom, network none", nil, []string{"/w", "/data"}, []string{"/w/secret", "/w/a/.env"}},
		{"denies in the workspace", granted.WithEntries(deny), rules.WorkspaceWrite, "same", nil, nil, nil},
		{"outside, which is no place in it", sandbox.Policy{}, rules.Outside, "same", nil, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			bound := test.policy.Bind(places)
			p, err := Confine(bound, test.where, places)
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "same" {
				if !p.Equal(bound) {
					t.Errorf("%v, want it as it was", p)
				}
				return
			}
			if p.String() != test.want || len(p.Named()) > 0 {
				t.Errorf("%v with %v, want %s", p, p.Named(), test.want)
			}
			for level, paths := range map[sandbox.Level][]string{sandbox.LevelWrite: test.writes,
				sandbox.LevelRead: test.reads, sandbox.LevelDeny: test.denies} {
				for _, name := range paths {
					if got := p.LevelAt(name); got != level {
						t.Errorf("%s: %v, want %v", name, got, level)
					}
				}
			}
		})
	}
}

// TestConfineNarrows: a rule for a place inside of the sandbox never makes a policy wider, and
// what it makes is no wider than its preset where that is narrower.
func TestConfineNarrows(t *testing.T) {
	paths := []string{"/", "/w", "/w/.git", "/w/a", "/tmp", "/etc", "/home/dev", "/usr", "/var/tmp/x"}
	rapid.Check(t, func(t *rapid.T) {
		var entries []sandbox.Entry
		for range rapid.IntRange(0, 6).Draw(t, "entries") {
			name := rapid.SampledFrom(paths).Draw(t, "path")
			entries = append(entries, sandbox.PathEntry(name,
				sandbox.Level(rapid.IntRange(0, 2).Draw(t, "level"))))
		}
		if rapid.Bool().Draw(t, "glob") {
			entries = append(entries, sandbox.GlobEntry("/w/**/.env"))
		}
		p, err := sandbox.New(sandbox.Managed,
			sandbox.Network(rapid.IntRange(0, 2).Draw(t, "network")), entries...)
		if err != nil {
			t.Fatal(err)
		}
		where := rapid.SampledFrom([]rules.Sandbox{rules.ReadOnly, rules.WorkspaceWrite}).Draw(t, "where")
		got, err := Confine(p, where, places)
		if err != nil || !p.Covers(got) || p.Denies() != got.Denies() {
			t.Fatalf("%v with %v becomes %v with %v, %v", p, p.Entries(), got, got.Entries(), err)
		}
		preset := map[rules.Sandbox]sandbox.Policy{rules.ReadOnly: sandbox.ReadOnly(),
			rules.WorkspaceWrite: sandbox.WorkspaceWrite()}[where].Bind(places)
		if names := []string{"read-only", "workspace-write"}; !slices.Contains(names, basis(p)) &&
			!preset.Covers(got) {
			t.Fatalf("%v with %v becomes %v with %v, which is wider than %v", p, p.Entries(), got,
				got.Entries(), where)
		}
	})
}
