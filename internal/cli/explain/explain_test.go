// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

const explainRules = `prefix_rule(["git", ["status", "log"]])
prefix_rule(["git", "push"], "prompt", justification = "shared history")
prefix_rule(["rm", "-rf"], "forbidden")
prefix_rule(["Del"], "forbidden", canonical_matching = True)
prefix_rule(["sudo"])
prefix_rule(["bash"])
`

// checkExplained explains a command without a sandbox, where heuristics count.
func checkExplained(t *testing.T, text string, argv ...string) *Explanation {
	t.Helper()
	dir := t.TempDir()
	r := &sallyport.Runner{Policy: sandbox.FullAccess(),
		Rules: rules.Load(rules.Host{}, rules.Source{Name: "r", Text: []byte(text)})}
	defer r.Close()
	e, err := ExplainRun(t.Context(), r, &sallyport.Cmd{Args: argv, Dir: dir},
		Question{Host: rules.Host{Dir: dir, Home: "/home/dev"}}, Sandbox{Mode: "full-access"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExplainCommand combines rules, scripts and heuristics.
func TestExplainCommand(t *testing.T) {
	for _, test := range []struct {
		script, want string
	}{
		{"git status", "allow"},
		{"git status && ls", "allow"},
		{"git push", "prompt"},
		{"git status; git push", "prompt"},
		{"rm -rf x", "forbidden"},
		{"rm x", "allow"},
		{"rm -f x", "prompt"},                // dangerous
		{"sudo rm -f x", "prompt"},           // an allow for sudo is none for rm
		{"sudo -n rm -fr x", "forbidden"},    // by its usual spelling
		{"git -C x push", "prompt"},          // without the options of git
		{"/bin/rm -rf x", "forbidden"},       // by its base name
		{"c=rm; $c -rf \"$x\"", "forbidden"}, // partly known, and begins with the rule
		{"/bin/rm -rf \"$x\"", "forbidden"},  // both
		{"rm $x y", "prompt"},                // maybe
		{"DEL \"$x\"", "forbidden"},          // canonical
		{"echo $x", "allow"},                 //
		{"curl u | sh", "prompt"},            // unknown
		{"git log $x", "allow"},              //
		{"git log; if", "prompt"},            // a syntax error
		{"for f in *.o; do rm \"$f\"; done", "allow"},
		{"env -S 'git push'", "prompt"},
		{"dell x", "allow"},
	} {
		if e := checkExplained(t, explainRules, "bash", "-lc",
			test.script); e.Decision.String() != test.want {
			t.Errorf("%q: %s, want %s\n%s", test.script, e.Decision, test.want, e)
		}
	}
	if e := checkExplained(t, `prefix_rule(["ls"])`, "bash", "-c",
		"curl u | sh"); e.Decision != rules.Allow || len(e.Unknown) != 1 {
		t.Errorf("without rules that prompt or forbid nothing unknown matters: %s", e)
	}
	if e := checkExplained(t, `prefix_rule(["bash"], "forbidden")`, "bash", "-c",
		"ls"); e.Decision != rules.Forbid {
		t.Errorf("a rule for the shell: %s", e)
	}
	if e := checkExplained(t, `prefix_rule(["bash"], "forbidden")`, "bash", "-c",
		"ls >f"); e.Decision != rules.Forbid || !e.Opaque {
		t.Errorf("a rule for the shell, and an opaque script: %s", e)
	}
}

// TestExplainParts looks at the parts of one explanation.
func TestExplainParts(t *testing.T) {
	e := checkExplained(t, explainRules, "bash", "-lc", "git status\nsudo -n rm -r -f \"a b\"")
	if e.Opaque || len(e.Commands) != 2 || len(e.Runs) != 2 {
		t.Fatalf("%+v", e)
	}
	if p := e.Commands[0]; !p.Safe || p.Danger || p.Rule == nil || p.Rule.Line != 1 || p.Line != 1 ||
		p.Decision != rules.Allow {
		t.Errorf("git status: %+v", p)
	}
	if p := e.Commands[1]; p.Safe || !p.Danger || p.Rule.Line != 5 || p.Line != 2 {
		t.Errorf("sudo: %+v", p)
	}
	if p := e.Runs[1]; p.Through != "sudo" || p.Decision != rules.Forbid || p.Rule.Line != 3 ||
		strings.Join(p.Argv, " ") != "rm -rf a b" {
		t.Errorf("rm: %+v", p)
	}
	e = checkExplained(t, explainRules, "bash", "-lc", "git push $x >f; $y z")
	want := `This command needs approval.
  allow      bash -lc "git push $x >f; $y z"  (r:6:1)
  prompt     may run git push …  (r:2:1)
             shared history
  allow      may run z  (no rule)
  prompt     may run … z  (maybe r:2:1)
             shared history
The script is more than plain commands (redirection); rules that allow its commands do not count.
Other commands may run at line 1, column 17: command name from an expansion.
Approval on-request: ` + "`bash -lc 'git push $x >f; $y z'`" + ` requires approval: shared history.
Decided by: rules want a question about it.
No sandbox: it may do what this user may.
`
	if got := e.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestExplainBroken(t *testing.T) {
	r := &sallyport.Runner{Rules: rules.Load(rules.Host{}, rules.Source{Name: "r", Text: []byte("x")})}
	defer r.Close()
	_, err := ExplainRun(t.Context(), r, &sallyport.Cmd{Args: []string{"ls"}}, Question{}, Sandbox{})
	var load *rules.LoadError
	if !errors.As(err, &load) {
		t.Errorf("%v, want that the file does not load", err)
	}
}
