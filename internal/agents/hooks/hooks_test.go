// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// find returns the agent with a name; nil for none.
func find(name string) *Agent {
	for _, a := range agents {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// recorded returns an event that an agent has sent, with a command COMMAND.
func recorded(t testing.TB, name string) string {
	t.Helper()
	event, err := os.ReadFile(filepath.Join("testdata", "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(event))
}

// TestContracts is about every decision in the words of every agent.
func TestContracts(t *testing.T) {
	const reason = "because"
	decisions := map[string]Answer{
		"allow": {Decision: Allow}, "deny": {Decision: Deny, Reason: reason},
		"ask":     {Decision: Ask, Reason: reason, Command: "sallyport run -c ls", Instead: "; add a rule"},
		"contain": {Decision: Contain, Command: "sallyport run -c ls"},
	}
	specific := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":`
	const whole = `{"command":"sallyport run -c ls","description":"Run it","timeout":120000}}}`
	said := func(permission, reason string) string {
		return `{"permission":"` + permission + `","user_message":"` + reason +
			`","agent_message":"` + reason + `"}`
	}
	for agent, want := range map[string]map[string]string{
		"claude": {
			"allow":   specific + `"allow"}}`,
			"deny":    specific + `"deny","permissionDecisionReason":"because"}}`,
			"ask":     specific + `"ask","permissionDecisionReason":"because","updatedInput":` + whole,
			"contain": specific + `"allow","updatedInput":` + whole,
		},
		"codex": {
			"allow": ``, "deny": specific + `"deny","permissionDecisionReason":"because"}}`,
			"ask":     specific + `"deny","permissionDecisionReason":"because; add a rule"}}`,
			"contain": specific + `"allow","updatedInput":{"command":"sallyport run -c ls"}}}`,
		},
		"cursor": {
			"allow": `{"permission":"allow"}`,
			"deny":  said("deny", "because"),
			"ask":   said("deny", "because; add a rule"),
			"contain": `{"permission":"allow","updated_input":` +
				`{"command":"sallyport run -c ls","is_background":false}}`,
		},
		"cursor-shell": {
			"allow":   `{"permission":"allow"}`,
			"deny":    said("deny", "because"),
			"ask":     said("ask", "because"),
			"contain": said("ask", outside),
		},
		"gemini": {
			"allow": `{"decision":"allow"}`, "deny": `{"decision":"deny","reason":"because"}`,
			"ask": `{"decision":"ask","reason":"because"}`,
			"contain": `{"decision":"allow","hookSpecificOutput":{"hookEventName":"BeforeTool",` +
				`"tool_input":{"command":"sallyport run -c ls"}}}`,
		},
	} {
		for decision, text := range want {
			t.Run(agent+" "+decision, func(t *testing.T) {
				name, _, _ := strings.Cut(agent, "-")
				event := strings.Replace(recorded(t, agent), "COMMAND", `echo \"a\" && ls`, 1)
				c, err := find(name).Decode([]byte(event))
				if err != nil || c == nil || c.Command != `echo "a" && ls` || c.Dir != "/w" {
					t.Fatalf("%+v, %v", c, err)
				}
				got := c.Encode(decisions[decision])
				var a, b any
				if text == "" {
					if got != nil {
						t.Errorf("got %s, want nothing", got)
					}
				} else if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(text), &b) != nil ||
					!cmp.Equal(a, b) {
					t.Errorf("got %s, want %s", got, text)
				}
			})
		}
	}
}

// TestPermissionRequest: a person is asked anyway, so that only deny is an opinion.
func TestPermissionRequest(t *testing.T) {
	for _, agent := range []string{"claude", "codex"} {
		event := strings.Replace(recorded(t, agent), "PreToolUse", "PermissionRequest", 1)
		c, err := find(agent).Decode([]byte(event))
		if err != nil || c == nil {
			t.Fatal(c, err)
		}
		for _, d := range []Decision{Allow, Ask, Contain} {
			if got := c.Encode(Answer{Decision: d, Reason: "r", Command: "c"}); got != nil {
				t.Errorf("%s, %d: %s", agent, d, got)
			}
		}
		want := `{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"r"},` +
			`"hookEventName":"PermissionRequest"}}` + "\n"
		if got := c.Encode(Answer{Reason: "r"}); string(got) != want {
			t.Errorf("%s: %s", agent, got)
		}
	}
}

// TestDecode is about events that are no commands, and about those that are not valid.
func TestDecode(t *testing.T) {
	event := recorded(t, "claude")
	const bash = `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":`
	for _, test := range []struct {
		name, agent, event string
		fails              bool
	}{
		{"another tool", "claude",
			`{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"/x"}}`, false},
		{"another event", "claude", `{"hook_event_name":"Stop","stop_hook_active":false}`, false},
		{"another event with a command", "claude",
			`{"hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":1}}`, false},
		{"an event of another agent", "gemini",
			`{"hook_event_name":"PreToolUse","tool_name":"Bash"}`, false},
		{"no event of an agent with one", "gemini",
			`{"hook_event_name":"","tool_name":"run_shell_command"}`, false},
		{"another tool of cursor", "cursor",
			`{"hook_event_name":"preToolUse","tool_name":"Write","tool_input":{}}`, false},
		{"another event of cursor", "cursor",
			`{"hook_event_name":"afterShellExecution","command":3}`, false},
		{"no JSON", "claude", `{"hook_event_name"`, true},
		{"nothing", "claude", ``, true},
		{"text after the event", "claude", event + "x", true},
		{"two events", "claude", event + event, true},
		{"not UTF-8", "claude", strings.Replace(event, "COMMAND", "\xff", 1), true},
		{"a list", "claude", `[]`, true},
		{"a text", "codex", `"PreToolUse"`, true},
		{"null", "gemini", `null`, true},
		{"no name of the event", "cursor", `{"command":"ls"}`, true},
		{"another spelling of the name", "cursor",
			`{"Hook_Event_Name":"beforeShellExecution","command":"ls"}`, true},
		{"a name that is no text", "cursor", `{"hook_event_name":1,"command":"ls"}`, true},
		{"no tool", "claude", `{"hook_event_name":"PreToolUse","tool_input":{"command":"ls"}}`, true},
		{"no input", "claude", `{"hook_event_name":"PreToolUse","tool_name":"Bash"}`, true},
		{"an input that is no object", "claude", bash + `"ls"}`, true},
		{"no command", "claude", bash + `{"Command":"ls"}}`, true},
		{"a command that is no text", "codex", bash + `{"command":["ls"]}}`, true},
		{"a command that is null", "codex", bash + `{"command":null}}`, true},
		{"two commands", "codex", bash + `{"command":"ls","command":"rm"}}`, true},
		{"two names of the event", "codex", `{"hook_event_name":"Stop",` + bash[1:] + `{"command":"ls"},` +
			`"hook_event_name":"Stop"}`, true},
		{"no command before a shell", "cursor",
			`{"hook_event_name":"beforeShellExecution","cwd":"/"}`, true},
		{"a relative directory", "claude", strings.Replace(event, `"/w"`, `"w"`, 1), true},
		{"a directory that is no text", "claude", strings.Replace(event, `"/w"`, `1`, 1), true},
		{"deep", "claude",
			`{"hook_event_name":"Stop","x":` + strings.Repeat("[", 9999) +
				strings.Repeat("]", 9999) + `}`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := find(test.agent).Decode([]byte(test.event))
			if c != nil || (err != nil) != test.fails {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

// FuzzDecode: no event is answered by anything but an object, or nothing.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"claude", "codex", "cursor", "cursor-shell", "gemini"} {
		f.Add([]byte(recorded(f, name)), "sallyport run -c ls")
	}
	f.Fuzz(func(t *testing.T, event []byte, command string) {
		for _, a := range agents {
			c, err := a.Decode(event)
			if err != nil || c == nil {
				continue
			}
			for d := Deny; d <= Allow; d++ {
				got := c.Encode(Answer{Decision: d, Reason: "r", Command: command})
				var o map[string]any
				if got != nil && json.Unmarshal(got, &o) != nil {
					t.Fatalf("%s: %q", a.Name, got)
				}
			}
		}
	})
}
