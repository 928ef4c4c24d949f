// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
)

// readLines decodes a file of internal/command/script's testdata, one JSON object a line.
func readLines[T any](t testing.TB, name string) []T {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "script", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []T
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s:%d: %v", name, len(all)+1, err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}

// decisionRules are those under which the peer was observed.
const decisionRules = `prefix_rule(pattern=[["cat","ls","echo","true"]])
prefix_rule(pattern=["git","log"])
prefix_rule(pattern=["git","push"], decision="prompt", justification="shared history")
prefix_rule(pattern=["git","push","--force"], decision="prompt")
prefix_rule(pattern=["rm"], decision="forbidden", justification="use trash")
prefix_rule(pattern=["zzz"], decision="forbidden")
prefix_rule(pattern=["zzz","sub"], decision="forbidden", justification="deep")
prefix_rule(pattern=["tool"])
host_executable(name="tool", paths=["/opt/x/tool"])
prefix_rule(pattern=["Del"], decision="forbidden", canonical_matching=True)
`

// stricter are the scripts that the peer runs, or asks about, and that a rule stops here, however
// they are spelled.
var stricter = []string{
	"git -C . push", "(rm /nonexistent/x)", `r""m /nonexistent/x`, `"rm" /nonexistent/x`,
	"X=1 rm /nonexistent/x", "env rm /nonexistent/x",
	`sh -c "rm /nonexistent/x"`, "coproc rm /nonexistent/x", "time rm /nonexistent/x", "zzz <<EOF\nEOF",
	"ls & zzz", "echo `zzz`", "! zzz",
	"rm -rf $X", "(rm -f /nonexistent/x)", "command rm -rf /nonexistent/x", "sudo rm -f /nonexistent/x",
	"ls && (rm -rf /nonexistent/x)",
	`trap "rm -f /nonexistent/x" EXIT`, `echo "unclosed`, "&& foo",
}

// TestDecisionVectors compares answers and reasons with the peer's. Nothing is looser.
func TestDecisionVectors(t *testing.T) {
	type row struct {
		Approval string `json:"approval_policy"`
		Script   string `json:"script"`
		Outcome  string `json:"outcome"`
		Reason   string `json:"reason"`
	}
	set := load(t, decisionRules)
	outcomes := map[string]Answer{"reject": Forbid, "ask": Ask, "run": Skip}
	used := map[string]bool{}
	for _, r := range readLines[row](t, "decisions.jsonl") {
		policy, err := approval.Parse(r.Approval)
		want, ok := outcomes[r.Outcome]
		if err != nil || !ok {
			t.Fatalf("%+v: %v", r, err)
		}
		d := Judge(&Question{Command: bash(r.Script), Rules: set, Host: rules.Host{Dir: "/w"},
			Approval: policy, SafeList: true, Place: Full})
		differs := false
		for _, s := range stricter {
			differs = differs || s == r.Script
		}
		switch {
		case d.Answer > want:
			t.Errorf("%s, %q: %s; the peer's outcome is %s", r.Approval, r.Script, textOf(d), r.Outcome)
		case differs:
			used[r.Script] = used[r.Script] || d.Answer < want
		case d.Answer != want:
			t.Errorf("%s, %q: %s; the peer's outcome is %s, and the difference is not recorded", r.Approval,
				r.Script, textOf(d), r.Outcome)
		case r.Reason != "" && d.Reason != text.Line(r.Reason):
			t.Errorf("%s, %q: %s, want %s", r.Approval, r.Script, d.Reason, r.Reason)
		}
	}
	for _, s := range stricter {
		if !used[s] {
			t.Errorf("the recorded difference %q is none", s)
		}
	}
}

// corpusRules restrict what the corpora are about.
const corpusRules = `prefix_rule(["rm", "-rf"], "forbidden")
prefix_rule(["git", "push"], "prompt")
`

// TestSpellings: a rule is not dodged by spelling. What is certain is forbidden or asked about as
// the rule says, and what is not is asked about.
func TestSpellings(t *testing.T) {
	type row struct {
		Script string
		Argv   []string
		Rule   []string
		Found  string
	}
	set := load(t, corpusRules)
	for _, r := range readLines[row](t, "spellings.jsonl") {
		if r.Argv == nil {
			r.Argv = []string{"bash", "-c", r.Script}
		}
		d := Judge(&Question{Command: r.Argv, Rules: set, Host: rules.Host{Dir: "/w"}})
		most := Ask
		if r.Rule[0] == "rm" && r.Found == "yes" {
			most = Forbid
		}
		if d.Answer > most || d.Reason == "" {
			t.Errorf("%q: %s", r.Argv, textOf(d))
		}
		if d := Judge(&Question{Command: r.Argv, Rules: set, Approval: approval.Never}); d.Answer != Forbid {
			t.Errorf("%q under never: %s", r.Argv, textOf(d))
		}
	}
}

// TestBenign: rules do not stop everyday commands that they are not about, except those that
// cannot be read to their end.
func TestBenign(t *testing.T) {
	type row struct{ Script, Found string }
	set := load(t, corpusRules)
	for _, r := range readLines[row](t, "benign.jsonl") {
		want := Skip
		if r.Found != "" {
			want = Ask
		}
		if d := Judge(&Question{Command: []string{"bash", "-c", r.Script}, Rules: set,
			Host: rules.Host{Dir: "/w"}}); d.Answer != want {
			t.Errorf("%q: %s", r.Script, textOf(d))
		}
	}
}

// TestLongCommand: a reason stays short, and on one line.
func TestLongCommand(t *testing.T) {
	d := Judge(&Question{Command: []string{"rm", "é\n" + strings.Repeat("é", 100_000)},
		Rules: load(t, decisionRules)})
	if d.Answer != Forbid || len(d.Reason) > 2*maxLine || strings.Contains(d.Reason, "\n") ||
		!strings.Contains(d.Reason, "é…` rejected") {
		t.Errorf("%d bytes: %.100q", len(d.Reason), d.Reason)
	}
}

// TestManyCommands: a script with many commands that are known in part and many rules are not
// compared with each other for minutes; the rest is as unknown as it looks.
func TestManyCommands(t *testing.T) {
	set := manyRules(t, 5_000)
	var script strings.Builder
	for i := range 1_000 {
		fmt.Fprintf(&script, "other%d $X\n", i)
	}
	d := Judge(&Question{Command: bash(script.String()), Rules: set})
	if d.Answer != Ask || len(d.Parts.Unknown) != 1 || d.Parts.Unknown[0].Why != "too many commands" {
		t.Errorf("%v, %+v", d.Answer, d.Parts.Unknown)
	}
}
