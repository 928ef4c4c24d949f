// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestGivenIsShown: a question shows what a command gets beside its script, or the call is refused.
func TestGivenIsShown(t *testing.T) {
	var shown string
	c := elicitation(t, answers(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		shown = p.Message
		return accept("denied"), nil
	}))
	with := func(cmd, name string, value any) members {
		m := escalated(cmd)
		m[name] = value
		return m
	}
	c.call("exec", with("sh", "stdin", "touch /etc/x\n")).exits(t, 123)
	contains(t, shown, "it must", `with the standard input "touch /etc/x\n"`)
	c.call("exec", with("sh", "tty", true)).exits(t, 123)
	contains(t, shown, "with input that the agent sends later")
	more := members{"cmd": "true", "env": members{"LD_PRELOAD": "./x.so"}, "justification": "it must",
		"sandbox_permissions":    "with_additional_permissions",
		"additional_permissions": members{"write": []string{outside(t)}}}
	c.call("exec", more).exits(t, 123)
	contains(t, shown, "variable: LD_PRELOAD=./x.so")
	shown = ""
	for name, m := range map[string]members{
		"variables":  with("true", "env", members{"LD_PRELOAD": "./x.so"}),
		"long input": with("sh", "stdin", strings.Repeat("x", 3000)),
	} {
		if f := c.call("exec", m); !f.failed || shown != "" {
			t.Errorf("%s: %+v, asked %q", name, f, shown)
		}
	}
}

// TestVariablesStay: a rule that leads a command outside does not know the variables that the model sets.
func TestVariablesStay(t *testing.T) {
	file := filepath.Join(outside(t), "made")
	rules := filepath.Join(t.TempDir(), "r.rules")
	const rule = `prefix_rule(pattern=["touch"], decision="allow", sandbox="outside")`
	if err := os.WriteFile(rules, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, nil, "-a", "never", "--rules", rules)
	c.call("exec", members{"cmd": "touch " + file, "env": members{"X": "y"}}).exits(t, 1)
	if _, err := os.Lstat(file); err == nil {
		t.Error("it ran outside")
	}
	c.call("exec", members{"cmd": "touch " + file}).exits(t, 0)
	if _, err := os.Lstat(file); err != nil {
		t.Error("the rule leads nothing outside:", err)
	}
}
