// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/rules"
)

func load(t testing.TB, text string) *rules.Set {
	t.Helper()
	set, err := rules.Parse("r", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func bash(script string) []string { return []string{"/bin/bash", "-lc", script} }

// asking returns a policy that asks where rules prompt, to leave the sandbox, or neither.
func asking(rules, sandbox bool) approval.Policy {
	return approval.Granular{Rules: rules, SandboxApproval: sandbox}.Policy()
}

const tableRules = `prefix_rule(["git", ["status", "log"]])
prefix_rule(["git", "push"], "prompt", justification = "shared history")
prefix_rule(["git", "push", "--force"], "prompt")
prefix_rule(["rm"], "forbidden", justification = "use trash")
prefix_rule(["zzz"], "forbidden")
prefix_rule(["zzz", "sub"], "forbidden", justification = "deep")
prefix_rule(["make", "all"])
prefix_rule(["sudo"])
`

// policies are all ways in which questions are treated.
var policies = map[string]approval.Policy{
	"untrusted": approval.Untrusted, "on-request": approval.OnRequest, "never": approval.Never,
	"granular, rules": asking(true, false), "granular, sandbox": asking(false, true), "granular, neither": asking(false, false),
}

const (
	gitPush = "`/bin/bash -lc 'git push'` requires approval: shared history"
	wish    = "it asks to run outside the sandbox"
)

// forbids is what each policy makes of a command that a rule forbids.
func forbids(reason string) map[string]string {
	m := map[string]string{}
	for name := range policies {
		m[name] = "forbid: " + reason
	}
	return m
}

// allows is what each policy makes of a command that no rule is about, except under untrusted.
func allows(untrusted string) map[string]string {
	m := map[string]string{}
	for name := range policies {
		m[name] = "skip"
	}
	m["untrusted"] = untrusted
	return m
}

// TestTable is the tables of the peer's approvals, by the strictest of what a command runs.
func TestTable(t *testing.T) {
	unknown := "no rule allows `make`, and it is not known to read only"
	for _, test := range []struct {
		name    string
		script  string
		outside bool
		want    map[string]string // by the name of the policy
	}{
		{"forbidden", "rm x", false, forbids("`/bin/bash -lc 'rm x'` rejected: use trash")},
		{"forbidden, and asks to leave", "rm x", true, forbids("`/bin/bash -lc 'rm x'` rejected: use trash")},
		{"forbidden without a justification", "zzz", false, forbids("`/bin/bash -lc zzz` rejected: policy forbids commands starting with `zzz`")},
		{"the longest prefix", "zzz sub", false, forbids("`/bin/bash -lc 'zzz sub'` rejected: deep")},
		{"strictest of all", "git push; zzz", false, forbids("`/bin/bash -lc 'git push; zzz'` rejected: policy forbids commands starting with `zzz`")},
		{"prompt", "git push", false, map[string]string{
			"untrusted": "ask: " + gitPush, "on-request": "ask: " + gitPush, "never": "forbid: " + NeverAsks,
			"granular, rules": "ask: " + gitPush, "granular, sandbox": "forbid: " + RulesOff, "granular, neither": "forbid: " + RulesOff,
		}},
		{"prompt, and asks to leave", "git push", true, map[string]string{
			"untrusted": "ask: " + gitPush, "on-request": "ask: " + gitPush, "never": "forbid: " + NeverAsks,
			"granular, rules": "forbid: " + SandboxOff, "granular, sandbox": "forbid: " + RulesOff, "granular, neither": "forbid: " + RulesOff,
		}},
		{"no rule, safe", "ls", false, allows("skip")},
		{"no rule, not safe", "make", false, allows("ask: " + unknown)},
		{"no rule, dangerous", "sudo unlink x; sudo rmdir x", false, allows("skip")},
		{"a rule that allows", "make all && git log | cat", false, allows("skip")},
		{"a rule that allows a part", "git status && make", false, allows("ask: " + unknown)},
		{"opaque", "git status > x", false, allows("ask: no rule allows `/bin/bash -lc 'git status > x'`, and it is not known to read only")},
		{"asks to leave, safe and allowed", "ls && git log", true, map[string]string{
			"untrusted": "ask: " + wish, "on-request": "ask: " + wish, "never": "forbid: " + NeverLeaves,
			"granular, rules": "forbid: " + SandboxOff, "granular, sandbox": "ask: " + wish, "granular, neither": "forbid: " + SandboxOff,
		}},
		{"asks to leave, no rule", "make", true, map[string]string{
			"untrusted": "ask: " + unknown, "on-request": "ask: " + wish, "never": "forbid: " + NeverLeaves,
			"granular, rules": "forbid: " + SandboxOff, "granular, sandbox": "ask: " + wish, "granular, neither": "forbid: " + SandboxOff,
		}},
	} {
		for name, policy := range policies {
			d := Judge(&Question{Command: bash(test.script), Rules: load(t, tableRules), Approval: policy,
				SafeList: true, Wish: map[bool]Wish{true: Leave}[test.outside]})
			if got := textOf(d); got != test.want[name] {
				t.Errorf("%s, %s:\n%s, want\n%s", test.name, name, got, test.want[name])
			}
		}
	}
}

// textOf returns answer and reason of a decision.
func textOf(d Decision) string {
	switch d.Answer {
	case Skip:
		return "skip" + d.Reason
	case Ask:
		return "ask: " + d.Reason
	case Forbid:
	}
	return "forbid: " + d.Reason
}

// TestWithoutRules: only untrusted and the wish to leave make a difference, and a rule set that
// does not load forbids whatever the policy.
func TestWithoutRules(t *testing.T) {
	broken := rules.Load(rules.Host{}, rules.Source{Name: "good", Text: []byte(`prefix_rule(["ls"])`)},
		rules.Source{Name: "bad", Text: []byte("x(")})
	for name, policy := range policies {
		for _, set := range []*rules.Set{nil, rules.Load(rules.Host{}), load(t, "")} {
			want := map[bool]string{true: "ask: no rule allows `make`, and it is not known to read only",
				false: "skip"}[policy == approval.Untrusted]
			if got := textOf(Judge(&Question{Command: []string{"make"}, Rules: set,
				Approval: policy})); got != want {
				t.Errorf("%s: %s", name, got)
			}
		}
		d := Judge(&Question{Command: []string{"ls"}, Rules: broken, Approval: policy, SafeList: true})
		var load *rules.LoadError
		if d.Answer != Forbid || !errors.As(d.Err, &load) || load.File != "bad" {
			t.Errorf("%s, broken rules: %+v", name, d)
		}
	}
	if d := Judge(&Question{}); d.Answer != Forbid {
		t.Errorf("no command: %+v", d)
	}
	if d := Judge(&Question{Command: []string{"make"}, Approval: approval.Policy(77)}); d.Answer != Ask {
		t.Errorf("a policy that is none: %s", textOf(d))
	}
	if d := (Decision{}); d.Answer != Forbid {
		t.Error("the zero decision does not forbid")
	}
}

// TestUntrusted: what may run without a question under untrusted.
func TestUntrusted(t *testing.T) {
	const text = tableRules + `
prefix_rule(["tool"])
host_executable("tool", ["/opt/x/tool"])
prefix_rule(["bash", "-c"])
prefix_rule(["/w/own", "x"])
`
	for _, test := range []struct {
		name     string
		argv     []string
		safeList bool
		want     Answer
	}{
		{"safe", []string{"ls"}, true, Skip},
		{"safe, by its path", []string{"/usr/bin/ls"}, true, Skip},
		{"safe without the list", []string{"ls"}, false, Ask},
		{"allowed without the list", []string{"git", "log"}, false, Skip},
		{"a planted program with a safe name", []string{"./ls"}, true, Ask},
		{"a planted program with an allowed name", []string{"./git", "log"}, true, Ask},
		{"a planted program by an absolute path", []string{"/w/git", "log"}, true, Ask},
		{"an allowed name in a directory of the system", []string{"/usr/bin/git", "log"}, true, Skip},
		{"a path of the system behind a link", []string{"/w/link/../../usr/bin/git", "log"}, true, Ask},
		{"a safe path behind a link", []string{"/w/link/../../usr/bin/ls"}, true, Ask},
		{"a shell behind a link", []string{"/w/link/../../bin/bash", "-lc", "ls"}, true, Ask},
		{"a listed path behind a link", []string{"/w/link/../../opt/x/tool"}, true, Ask},
		{"a listed path by the directory", bash("cd /w/evil && ../opt/x/tool"), true, Ask},
		{"a listed path", []string{"/opt/x/tool"}, true, Skip},
		{"a path that is not listed", []string{"/usr/bin/tool"}, true, Ask},
		{"a path in the rule", []string{"/w/own", "x"}, true, Skip},
		{"a planted shell", []string{"/w/bash", "-lc", "ls"}, true, Ask},
		{"a planted shell that a rule allows by name", []string{"/w/bash", "-c", "git status > x"}, true, Ask},
		{"an opaque script of an allowed shell", []string{"bash", "-c", "git status > x"}, true, Skip},
		{"safe commands in an opaque script", []string{"sh", "-c", "ls > x"}, true, Ask},
		{"removes without asking, behind an allowed program", []string{"sudo", "unlink", "x"}, true, Skip},
		{"removes without asking", []string{"sudo", "busybox", "grm", "-f", "x"}, true, Ask},
		{"restricted behind an allowed program", []string{"sudo", "git", "push"}, true, Ask},
		{"forbidden behind an allowed program", []string{"sudo", "rm", "x"}, true, Forbid},
	} {
		d := Judge(&Question{Command: test.argv, Rules: load(t, text), Approval: approval.Untrusted,
			SafeList: test.safeList, Host: rules.Host{Dir: "/w"}})
		if d.Answer != test.want {
			t.Errorf("%s: %s", test.name, fmt.Sprint(d.Answer, " ", d.Reason))
		}
	}
}
