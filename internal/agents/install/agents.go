// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
)

// The agents, by the names of their commands.
const (
	Claude = "claude"
	Codex  = "codex"
	Cursor = "cursor"
	VSCode = "vscode"
	Gemini = "gemini"
)

// An agent is where a program keeps its settings, and what its entries look like. The sources of files and
// forms: code.claude.com/docs/en/mcp and /hooks, developers.openai.com/codex, cursor.com/docs/mcp and
// /agent/hooks, code.visualstudio.com/docs/agents/reference/mcp-configuration, gemini-cli docs.
type agent struct {
	name string
	// variable names the directory that takes the place of instead, which is in the home directory. For
	// what is not in it, the directory takes the place of the home directory.
	variable, instead string

	mcpUser, mcpProject string // files
	top                 string // the member that has the servers; "" for the table of Codex
	kind                string // of a server
	timeout             int    // of a call

	hookFile string // of user and project; "" for an agent without hooks
	version  bool   // the file has a version
	groups   bool   // commands are in groups with a matcher
	events   []event
}

// An event is when an agent calls a hook, and for which tool.
type event struct {
	name, matcher string
	command       hookCommand
}

// An entry is an MCP server. The order of members is that of the file.
type entry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Timeout int      `json:"timeout,omitempty"`
}

func (e entry) same(o entry) bool { return e.Command == o.Command && slices.Equal(e.Args, o.Args) }

// A hookCommand is a hook as files have it, a hookGroup some for one kind of tool.
type (
	hookCommand struct {
		Type       string `json:"type,omitempty"`
		Name       string `json:"name,omitempty"`
		Command    string `json:"command"`
		Timeout    int    `json:"timeout"`
		OnFailure  string `json:"onFailure,omitempty"`
		FailClosed bool   `json:"failClosed,omitempty"`
		Matcher    string `json:"matcher,omitempty"`
	}
	hookGroup struct {
		Matcher string        `json:"matcher"`
		Hooks   []hookCommand `json:"hooks"`
	}
)

// Calls may take long: a command of an hour answers every few minutes.
const callSeconds = 330

// HookSeconds is how long an agent waits for a hook that is installed. Without it Claude Code and Codex wait
// for 600 s, Gemini CLI for 60, and Cursor as long as it wants to.
const HookSeconds = 30

var agents = []agent{
	{
		name: Claude, variable: "CLAUDE_CONFIG_DIR", instead: ".claude",
		mcpUser: ".claude.json", mcpProject: ".mcp.json", top: "mcpServers", kind: "stdio",
		hookFile: ".claude/settings.json", groups: true,
		events: []event{{"PreToolUse", "Bash",
			hookCommand{Type: "command", Timeout: HookSeconds, OnFailure: "block"}}},
	},
	{
		name: Codex, variable: "CODEX_HOME", instead: ".codex",
		mcpUser: ".codex/config.toml", mcpProject: ".codex/config.toml", timeout: callSeconds,
		hookFile: ".codex/hooks.json", groups: true,
		events: []event{{"PreToolUse", "Bash", hookCommand{Type: "command", Timeout: HookSeconds}}},
	},
	{
		name:    Cursor,
		mcpUser: ".cursor/mcp.json", mcpProject: ".cursor/mcp.json", top: "mcpServers",
		hookFile: ".cursor/hooks.json", version: true,
		events: []event{
			{"beforeShellExecution", "", hookCommand{Timeout: HookSeconds, FailClosed: true}},
			{"preToolUse", "", hookCommand{Timeout: HookSeconds, FailClosed: true, Matcher: "^Shell$"}},
		},
	},
	{
		name: VSCode, variable: "XDG_CONFIG_HOME", instead: ".config",
		mcpUser: ".config/Code/User/mcp.json", mcpProject: ".vscode/mcp.json", top: "servers", kind: "stdio",
	},
	{
		name:    Gemini,
		mcpUser: ".gemini/settings.json", mcpProject: ".gemini/settings.json", top: "mcpServers",
		timeout:  callSeconds * 1000,
		hookFile: ".gemini/settings.json", groups: true,
		events: []event{{"BeforeTool", "^run_shell_command$",
			hookCommand{Type: "command", Name: DefaultName, Timeout: HookSeconds * 1000}}},
	},
}

// Agents returns the names of the agents that have a part.
func Agents(part Part) []string {
	var names []string
	for i := range agents {
		if part == MCP || agents[i].hookFile != "" {
			names = append(names, agents[i].name)
		}
	}
	return names
}

// file returns the absolute path of the file that has a part, and the directory above which links are not
// looked at; "" looks at none but the file.
func (a *agent) file(o *Options, part Part) (path, within string) {
	name := a.hookFile
	switch {
	case part == MCP && o.Project:
		name = a.mcpProject
	case part == MCP:
		name = a.mcpUser
	}
	name = filepath.FromSlash(name)
	if o.Project {
		return filepath.Join(o.Dir, name), o.Dir
	}
	if a.variable != "" && o.Variable != nil && o.Variable(a.variable) != "" {
		return filepath.Join(o.Variable(a.variable),
			strings.TrimPrefix(name, a.instead+string(os.PathSeparator))), ""
	}
	return filepath.Join(o.Home, name), ""
}

// shellWord quotes a word for sh, if it needs that.
func shellWord(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	return programs.QuoteWords([]string{w})
}

// hookLine is the command of a hook.
func hookLine(command, agent string, extra []string) string {
	words := append([]string{command, "hook", agent}, extra...)
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// hookProgram returns the program of a line of [hookLine]; "" for another one.
func hookProgram(line, agent string) string {
	word, rest, found := strings.Cut(line, " hook "+agent)
	program := word
	if inner, ok := strings.CutPrefix(word, "'"); ok {
		program = strings.ReplaceAll(strings.TrimSuffix(inner, "'"), `'\''`, "'")
	}
	if !found || rest != "" && rest[0] != ' ' || shellWord(program) != word {
		return ""
	}
	return program
}

// NextSteps says what a person does after installing, in lines; it may be empty.
func NextSteps(o *Options, parts ...Part) string {
	var out string
	for _, part := range parts {
		switch {
		case o.Agent == Codex && part == Hook:
			out += "Codex runs the hook once you trust it: start codex and type /hooks.\n"
		case o.Agent == Codex && o.Project:
			out += "Codex reads the file of a project that it trusts.\n"
		case o.Agent == Claude && part == MCP && o.Project:
			out += "Claude Code asks before it starts a server of a project.\n"
		}
	}
	return out + "Restart " + o.Agent + ", or open a new session of it: settings are read at the start.\n"
}
