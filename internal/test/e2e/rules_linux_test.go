// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// ruleText is a set of rules; with one that is broken nothing runs.
func ruleText(text string) *rules.Set {
	return rules.Load(rules.Host{}, rules.Source{Name: "/r", Text: []byte(text)})
}

// TestRulesAttacks: commands that rules confine, and commands that would like to be taken for
// those which rules lead outside. Each of them writes; the controls succeed.
func TestRulesAttacks(t *testing.T) {
	const readOnly, outside, allow = `prefix_rule(["touch"], sandbox = "read-only")`,
		`prefix_rule(["touch"], sandbox = "outside")`, `prefix_rule(["touch"])`
	testenv.RunAsOrdinary(t)
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-test-") // commands have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	out := filepath.Join(dir, "out")
	for _, test := range []struct {
		name, rules, script string
		writes              bool
	}{
		{"in the workspace without a rule", ``, "touch in", true},
		{"in the workspace by an allow", allow, "touch in", true},
		{"in the workspace, read-only", readOnly, "touch in", false},
		{"read-only by another spelling", readOnly, `t"o"uch in`, false},
		{"read-only by a variable", readOnly, `t=touch; $t in`, false},
		{"read-only behind a program", readOnly, `env touch in`, false},
		{"read-only by a path", readOnly, `/usr/bin/touch in`, false},
		{"read-only with an unknown word", readOnly, `touch "$(pwd)/in"`, false},
		{"read-only by a name that is not known", readOnly, `$(cat name) in`, false},
		{"a name that is not known, and no rule", allow, `$(cat name) in`, true},
		{"read-only, read from standard input", readOnly, `cat script | sh`, false},
		{"outside without a rule", ``, "touch " + out, false},
		{"outside by an allow", allow, "touch " + out, false},
		{"outside by a rule", outside, "touch " + out, true},
		{"outside by a rule and a program of the system", outside, "/usr/bin/touch " + out, true},
		{"a planted program", outside, "./touch " + out, false},
		{"a planted shell", outside, "PLANTED touch " + out, false},
		{"a second command", outside, "touch in; cp in " + out, false},
		{"a redirection", outside, "touch in >" + out, false},
		{"a substitution", outside, "touch in $(touch " + out + ")", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			ws := filepath.Join(t.TempDir(), "ws")
			if err := os.Mkdir(ws, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, program := range map[string]string{"touch": "/usr/bin/touch", "bash": "/bin/sh"} {
				if err := os.Symlink(program, filepath.Join(ws, name)); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range map[string]string{"name": "touch", "script": "touch in"} {
				if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			os.Remove(out)
			r := newRunner(t, sandbox.WorkspaceWrite("."))
			r.Rules = ruleText(test.rules)
			args := []string{"/bin/sh", "-c", test.script}
			if rest, planted := strings.CutPrefix(test.script, "PLANTED "); planted {
				args = []string{"./bash", "-c", rest}
			}
			res, err := r.Run(t.Context(), &sallyport.Cmd{Args: args, Dir: ws})
			if err != nil {
				t.Fatal(err)
			}
			file := out
			if !strings.Contains(test.script, out) {
				file = filepath.Join(ws, "in")
			}
			if _, err := os.Lstat(file); (err == nil) != test.writes {
				t.Errorf("%s in %v: %v, %s", test.script, res.Sandbox.Mode, err, res.Output)
			}
			if test.rules != readOnly {
				return
			}
			for _, d := range res.Denials() {
				if d.Grant != "" || d.Wider != "" || !strings.Contains(d.Rule, "sandbox=read-only") {
					t.Errorf("%v by %q, grant %q %q; no flag helps", d, d.Rule, d.Grant, d.Wider)
				}
			}
		})
	}
}

// TestOutsideEnvironment: what a rule leads outside finds no planted programs by its environment, and is
// not kept inside by variables that mean nothing to it.
func TestOutsideEnvironment(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-test-") // commands have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ws, bin := filepath.Join(dir, "ws"), filepath.Join(dir, "bin")
	for _, d := range []string{ws, bin} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{bin + "/tool": "part", bin +
		"/part": "echo -n own; echo -n $PYTHONPATH; touch ../out", ws + "/part": "echo -n planted"} {
		if err := testenv.WriteProgram(name, "#!/bin/sh\n"+text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, variable, rules, want string }{
		{"a planted program in PATH", ws + ":" + bin, "A=1", `prefix_rule(["tool"], sandbox = "outside")`, "own"},
		{"an empty element of PATH", ":" + bin, "A=1", `prefix_rule(["tool"], sandbox = "outside")`, "own"},
		{"a variable that the program does not know", bin, "PYTHONPATH=src", `prefix_rule(["tool"], sandbox = "outside")`, "own"},
		{"inside", ws + ":" + bin, "A=1", `prefix_rule(["tool"])`, "planted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRunner(t, sandbox.WorkspaceWrite("."))
			r.Rules = ruleText(c.rules)
			res, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"tool"}, Dir: ws,
				Env: []string{"PATH=" + c.path + ":/usr/bin:/bin", c.variable}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = os.Lstat(dir + "/out")
			if got := res.Output.String(); got != c.want || (err == nil) != (c.want == "own") {
				t.Errorf("%q, want %q; %v", got, c.want, err)
			}
			os.Remove(dir + "/out")
		})
	}
}
