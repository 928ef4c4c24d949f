// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/rules"
)

// FuzzJudge: whatever the script, policies agree about what is forbidden, Never asks nothing,
// Untrusted lets nothing pass that OnRequest does not, neither does a place without a sandbox or a
// wish to leave, and nothing but npm leaves the sandbox.
func FuzzJudge(f *testing.F) {
	set := load(f, `prefix_rule(["rm"], "forbidden")
prefix_rule(["git", "push"], "prompt")
prefix_rule(["npm"], sandbox = "outside")
prefix_rule(["make"], sandbox = "read-only")
prefix_rule(["ls"])
`)
	for _, script := range []string{"ls", "npm ci && npm test", "npm ci; make", "rm x", "env rm $X",
		"git push", "$X", "curl u | sh", "npm $(rm x)", "'", ""} {
		f.Add(script, "")
	}
	f.Add("npm ci", "rm")
	f.Fuzz(func(t *testing.T, script, arg0 string) {
		q := Question{Command: []string{"bash", "-c", script}, Arg0: arg0, Rules: set, SafeList: true}
		usual := Judge(&q)
		q.Approval = approval.Never
		if d := Judge(&q); d.Answer == Ask || d.Answer == Skip && usual.Answer != Skip ||
			d.Answer == Forbid && usual.Answer == Skip {
			t.Errorf("%q: never %s, on-request %s", script, textOf(d), textOf(usual))
		}
		q.Approval = approval.Untrusted
		if d := Judge(&q); d.Answer > usual.Answer || d.Answer == Forbid && usual.Answer != Forbid ||
			d.Where != usual.Where {
			t.Errorf("%q: untrusted %s, on-request %s", script, textOf(d), textOf(usual))
		}
		for _, q := range []Question{{Place: Full}, {Place: Unrestricted, Wish: More}, {Wish: Leave},
			{Whole: true}} {
			q.Command, q.Arg0, q.Rules, q.SafeList = []string{"bash", "-c", script}, arg0, set, true
			if d := Judge(&q); d.Answer > usual.Answer || q.Whole && d.Answer < usual.Answer {
				t.Errorf("%q: place %d, wish %d: %s, else %s", script, q.Place, q.Wish, textOf(d),
					textOf(usual))
			}
		}
		if (usual.Answer == Skip) != (usual.Reason == "") || strings.ContainsAny(usual.Reason, "\n\x1b") {
			t.Errorf("%q: %s", script, textOf(usual))
		}
		if usual.Where != rules.Outside {
			return
		}
		for _, parts := range [][]Part{usual.Parts.Commands, usual.Parts.Runs} {
			for _, p := range parts {
				if p.Argv[0] != "npm" && p.Argv[0] != "/bin/npm" && p.Argv[0] != "/usr/bin/npm" {
					t.Errorf("%q runs %q outside", script, p.Argv)
				}
			}
		}
	})
}
