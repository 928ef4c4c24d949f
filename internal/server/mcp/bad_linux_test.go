// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestBadArguments: each is an answer with isError that says what is wrong, and the fix.
func TestBadArguments(t *testing.T) {
	c := open(t, nil)
	run := c.call("exec", members{"cmd": "echo x"}).exits(t, 0).Run
	many := make([]string, 2000)
	for name, test := range map[string]struct {
		tool string
		args any
		want string
	}{
		"unknown name":      {"exec", members{"cmd": "x", "command": "y"}, `unknown argument "command"`},
		"near name":         {"exec", members{"cmd": "x", "work_dir": "y"}, `did you mean "workdir"`},
		"near name of wait": {"wait", members{"session": "1"}, `did you mean "session_id"`},
		"no object":         {"exec", []int{1}, "one JSON object"},
		"no command":        {"exec", members{}, "cmd"},
		"empty command":     {"exec", members{"cmd": " "}, "cmd"},
		"wrong type":        {"exec", members{"cmd": 3}, "must be a string, not"},
		"wrong number":      {"exec", members{"cmd": "x", "yield_time_ms": "1"}, "must be a whole number"},
		"fraction":          {"exec", members{"cmd": "x", "yield_time_ms": 1.5}, "must be a whole number"},
		"NUL":               {"exec", members{"cmd": "a\x00b"}, "NUL"},
		"huge command":      {"exec", members{"cmd": strings.Repeat("x", 2<<20)}, "at most 1048576 bytes"},
		"no directory":      {"exec", members{"cmd": "x", "workdir": "missing"}, "does not exist"},
		"bad condition": {"exec", members{"cmd": "x", "wait_for": []string{"end"}},
			"invalid condition"},
		"bad pattern":     {"exec", members{"cmd": "x", "wait_for": []string{"match=("}}, "invalid"},
		"bad variable":    {"exec", members{"cmd": "x", "env": members{"A=B": "c"}}, "no variable"},
		"bad shell":       {"exec", members{"cmd": "x", "shell": "/bin/none"}, "none"},
		"bad permissions": {"exec", members{"cmd": "x", "sandbox_permissions": "all"}, "use_default"},
		"permissions missing": {"exec", members{"cmd": "x",
			"sandbox_permissions": "with_additional_permissions"}, "additional_permissions"},
		"permissions unasked": {"exec", members{"cmd": "x",
			"additional_permissions": members{"write": []string{"/x"}}}, "with_additional_permissions"},
		"permissions unknown": {"exec", members{"cmd": "x",
			"additional_permissions": members{"writes": []string{"/x"}}}, `did you mean "write"`},
		"a path as a host": {"exec", members{"cmd": "x",
			"sandbox_permissions":    "with_additional_permissions",
			"additional_permissions": members{"hosts": []string{"/etc"}}}, "no host"},
		"a rule that ends": {"exec", members{"cmd": "x", "prefix_rule": []string{"a", "--",
			"--escalate"}}, "without --"},
		"a long rule":         {"exec", members{"cmd": "x", "prefix_rule": many}, "prefix_rule"},
		"unknown approval":    {"exec", members{"cmd": "x", "approval_id": "nope"}, "unknown approval_id"},
		"unknown session":     {"wait", members{"session_id": "999999"}, "unknown session_id"},
		"session as a number": {"read", members{"session_id": 999999}, "unknown session_id"},
		"no session":          {"write", members{"chars": "x"}, "list shows the sessions"},
		"session of bad type": {"wait", members{"session_id": []int{1}}, "string or a whole number"},
		"no cursor":           {"read", members{"session_id": run, "cursor": "x"}, "no cursor of run"},
		"cursor of another":   {"read", members{"session_id": run, "cursor": "9999.0"}, "no cursor of run"},
		"cursor beyond": {"wait", members{"session_id": run, "cursor": run + ".100"},
			"no cursor of run"},
		"unknown stream":       {"read", members{"session_id": run, "stream": "both"}, "stdout or stderr"},
		"bad search":           {"read", members{"session_id": run, "search": "("}, "RE2"},
		"unknown signal":       {"signal", members{"session_id": run, "signal": "STOPIT"}, "unknown signal"},
		"negative time":        {"exec", members{"cmd": "x", "timeout_ms": -1}, "negative"},
		"patch missing":        {"patch", members{}, "Begin Patch"},
		"check without script": {"check", members{}, "cmd"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := c.CallTool(context.Background(), &sdk.CallToolParams{Name: test.tool,
				Arguments: test.args})
			if err != nil {
				t.Fatal(err)
			}
			f := factsOf(t, res)
			if !f.failed || !strings.Contains(f.text, test.want) || len(f.text) > 4096 {
				t.Errorf("%v %q, want %q", f.failed, f.text, test.want)
			}
		})
	}
	if _, err := c.CallTool(context.Background(), &sdk.CallToolParams{Name: "run"}); err == nil ||
		!strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("%v", err)
	}
	if f := c.call("exec", members{"cmd": "echo still here"}).exits(t, 0); f.Output != "still here\n" {
		t.Errorf("%+v", f)
	}
}
