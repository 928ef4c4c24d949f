// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hooks speaks the contracts of the hooks that agents call before they run a command: it decodes
// one event to a [Call], and encodes an [Answer] in the words of that agent. [Wrap] makes the command
// that takes the place of a command.
//
// The package is pure and decides nothing. What it cannot read is an error, and its caller has to answer
// that with an exit code that blocks: silence lets the command run in every agent.
//
// Sources, read in November 2026: code.claude.com/docs/en/hooks; openai/codex codex-rs/hooks at 0ea8381;
// cursor.com/docs/agent/hooks; google-gemini/gemini-cli docs/hooks/reference.md at 5411f11.
package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// MaxEvent is how many bytes an event has at most. One that is larger is not to be decoded.
const MaxEvent = 4 << 20

// Names of events.
const (
	permissionRequest = "PermissionRequest"    // of claude and codex: a person is about to be asked
	beforeShell       = "beforeShellExecution" // of cursor
)

// An Agent is one whose contract is known.
type Agent struct {
	Name string
	// File is where its hooks are set, below the home directory or the project. Variable is the one that
	// names another place than the directory of File in the home; empty for none.
	File, Variable string

	event string // before a tool is used
	more  string // another event with a command; empty for none
	tool  string // that runs a command in a shell
	dir   string // the member of its input that names a directory; empty for none
	// attended are the modes in which a person is asked about a command that the answer Ask has put in
	// the place of another; nil for an agent that puts none there.
	attended []string

	encode func(c *Call, a Answer) any // nil for nothing
}

var agents = []*Agent{
	{Name: "claude", File: ".claude/settings.json", Variable: "CLAUDE_CONFIG_DIR",
		event: "PreToolUse", more: permissionRequest, tool: "Bash", encode: claude,
		// auto and bypassPermissions run it unasked: anthropics/claude-code issues 89561, 77212
		attended: []string{"default", "acceptEdits", "plan"}},
	{Name: "codex", File: ".codex/hooks.json", Variable: "CODEX_HOME",
		event: "PreToolUse", more: permissionRequest, tool: "Bash", encode: codex},
	{Name: "cursor", File: ".cursor/hooks.json",
		event: "preToolUse", more: beforeShell, tool: "Shell", dir: "working_directory", encode: cursor},
	{Name: "gemini", File: ".gemini/settings.json",
		event: "BeforeTool", tool: "run_shell_command", dir: "dir_path", encode: gemini},
}

// Agents returns all agents. They must not be changed.
func Agents() []*Agent { return agents }

// Event is an event of the agent about a command in a directory, as far as it is read here.
func (a *Agent) Event(command, dir string) []byte {
	return encode(object{"hook_event_name": a.event, "tool_name": a.tool, "cwd": dir,
		"tool_input": object{"command": command}})
}

// A Call is a command that an agent is about to run.
type Call struct {
	Event   string
	Command string
	// Dir is where it would run. Where the event does not say, it is relative to where the agent called its
	// hook; empty is that directory.
	Dir string
	// Roots are the directories that the user works in, in one of which Dir has to be: the model may have
	// chosen it, and a contained command may write to where it runs. Empty is where the agent called its
	// hook.
	Roots []string

	agent *Agent
	mode  string                     // of permissions; empty for none
	input map[string]json.RawMessage // of the tool
}

// Decode reads one event. The Call is nil for an event that is about no command: there is nothing to
// answer. The error, a clause, says what is wrong with the event.
func (a *Agent) Decode(data []byte) (*Call, error) {
	event, err := strict.Object(data)
	if err != nil {
		return nil, fmt.Errorf("the event is not valid JSON: %w", err)
	}
	c := &Call{agent: a, input: event}
	if c.Event, err = member(event, "hook_event_name"); err != nil {
		return nil, err
	}
	switch {
	case c.Event != a.event && (c.Event != a.more || a.more == ""):
		return nil, nil
	case c.Event != beforeShell:
		tool, err := member(event, "tool_name")
		if err != nil || tool != a.tool {
			return nil, err
		}
		if c.input, err = strict.Object(event["tool_input"]); err != nil {
			return nil, fmt.Errorf("tool_input of the event: %w", err)
		}
	}
	if c.Command, err = member(c.input, "command"); err != nil {
		return nil, err
	}
	if c.mode, err = optional(event, "permission_mode"); err != nil {
		return nil, err
	}
	if c.Dir, c.Roots, err = a.directory(event, c.input); err != nil {
		return nil, err
	}
	return c, nil
}

// directory returns where the command of an event would run, and where the user works.
func (a *Agent) directory(event, input map[string]json.RawMessage) (dir string, roots []string, err error) {
	dir, err = optional(event, "cwd")
	if all := event["workspace_roots"]; err == nil && all != nil && json.Unmarshal(all, &roots) != nil {
		roots = nil
	}
	switch {
	case dir == "" && len(roots) > 0: // of cursor, which sends an empty cwd as well
		dir = roots[0]
	case dir != "" && len(roots) == 0:
		roots = []string{dir}
	}
	for _, name := range append([]string{dir}, roots...) {
		if err == nil && name != "" && !filepath.IsAbs(name) {
			err = fmt.Errorf("the directory of the event is not absolute: %s", text.Word(name))
		}
	}
	if a.dir != "" && err == nil {
		var below string
		if below, err = optional(input, a.dir); filepath.IsAbs(below) {
			dir = below
		} else if below != "" {
			dir = filepath.Join(dir, below)
		}
	}
	return dir, roots, err
}

var errNoText = errors.New("it is not a string")

// member returns a member of an object that has to be a text.
func member(object map[string]json.RawMessage, name string) (string, error) {
	value, ok := object[name]
	if !ok {
		return "", fmt.Errorf("the event has no %s", name)
	}
	var s string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &s) != nil {
		return "", fmt.Errorf("%s of the event: %w", name, errNoText)
	}
	return s, nil
}

// Rewritten reports whether the Command of an answer Ask runs when a person approves.
func (c *Call) Rewritten() bool { return c.Event == c.agent.event && c.agent.attended != nil }

// Attended reports whether the agent says that it asks a person about the answer Ask. It may be wrong.
func (c *Call) Attended() bool { return slices.Contains(c.agent.attended, c.mode) }

// optional is member for one that may be absent or null.
func optional(object map[string]json.RawMessage, name string) (string, error) {
	if value, ok := object[name]; !ok || string(value) == "null" {
		return "", nil
	}
	return member(object, name)
}

// A Decision is what is answered about a Call.
type Decision uint8

// The decisions. The zero Decision is Deny.
const (
	Deny Decision = iota
	Ask
	Contain
	Allow // the command runs as it is
)

// An Answer is what becomes of a Call.
type Answer struct {
	Decision Decision
	// Reason is for the person and the model; Deny and Ask need one.
	Reason string
	// Question is shown to a person who is asked, in lines with the reason; empty shows the reason alone.
	Question string
	// Command takes the place of the command, for Contain and where a person is asked; empty leaves it.
	Command string
	// Instead says what a person can do where the agent cannot ask, as a clause that follows the reason.
	Instead string
}

// asked is what a person is shown.
func (a *Answer) asked() string {
	if a.Question == "" {
		return a.Reason
	}
	return "sallyport: " + strings.TrimSuffix(a.Question, "\n")
}

// Encode returns what the agent reads on standard output; nil for nothing. Where its contract has no way
// to ask or to put a command in the place of another, the answer is the next stricter one that it has.
func (c *Call) Encode(a Answer) []byte {
	if v := c.agent.encode(c, a); v != nil {
		return encode(v)
	}
	return nil
}

// encode is v as one line of JSON. It consists of maps, texts and members that were valid JSON.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// outside is why a person is asked about a command that no answer can contain.
const outside = "sallyport: it would run outside of the sandbox, since Cursor did not take the command " +
	"of the hook preToolUse"

type object = map[string]any

// replaced is the input of the tool with another command.
func (c *Call) replaced(command string) map[string]json.RawMessage {
	input := maps.Clone(c.input)
	input["command"] = encode(command)
	return input
}

// specific is the answer of claude and codex.
func (c *Call) specific(decision, reason string, input any) any {
	o := object{"hookEventName": c.Event, "permissionDecision": decision, "permissionDecisionReason": reason,
		"updatedInput": input}
	maps.DeleteFunc(o, func(_ string, v any) bool { return v == nil || v == "" })
	return object{"hookSpecificOutput": o}
}

// permission is the answer to a request for permission: only deny is an opinion, since a person is asked
// anyway.
func permission(a Answer) any {
	if a.Decision != Deny {
		return nil
	}
	return object{"hookSpecificOutput": object{"hookEventName": permissionRequest,
		"decision": object{"behavior": "deny", "message": a.Reason}}}
}

func claude(c *Call, a Answer) any {
	if c.Event == permissionRequest {
		return permission(a)
	}
	var input any
	if a.Command != "" {
		input = c.replaced(a.Command) // all members: it replaces the input, and is not merged
	}
	switch a.Decision {
	case Ask:
		return c.specific("ask", a.asked(), input)
	case Contain:
		return c.specific("allow", a.Reason, input)
	case Allow:
		return c.specific("allow", a.Reason, nil)
	}
	return c.specific("deny", a.Reason, nil)
}

func codex(c *Call, a Answer) any {
	switch {
	case c.Event == permissionRequest:
		return permission(a)
	case a.Decision == Allow:
		return nil // "allow" alone is an error there, and the hook is skipped
	case a.Decision == Contain:
		return c.specific("allow", "", object{"command": a.Command})
	}
	return c.specific("deny", a.Reason+a.Instead, nil) // "ask" runs the command there
}

func cursor(c *Call, a Answer) any {
	said := func(permission, reason string) any {
		return object{"permission": permission, "user_message": reason, "agent_message": reason}
	}
	shell := c.Event == beforeShell
	switch {
	case a.Decision == Allow:
		return object{"permission": "allow"}
	case a.Decision == Contain && !shell:
		return object{"permission": "allow", "updated_input": c.replaced(a.Command)}
	case a.Decision == Contain: // nothing can take its place there
		return said("ask", outside)
	case a.Decision == Ask && shell:
		return said("ask", a.asked())
	}
	return said("deny", a.Reason+a.Instead) // "ask" is not enforced for preToolUse
}

func gemini(_ *Call, a Answer) any {
	switch a.Decision {
	case Ask:
		return object{"decision": "ask", "reason": a.asked()}
	case Contain:
		return object{"decision": "allow", "hookSpecificOutput": object{"hookEventName": "BeforeTool",
			"tool_input": object{"command": a.Command}}}
	case Allow:
		return object{"decision": "allow"}
	}
	return object{"decision": "deny", "reason": a.Reason}
}
