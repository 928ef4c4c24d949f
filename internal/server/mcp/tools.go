// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// instructions are what a client tells its model about the server.
const instructions = `sallyport runs commands in a sandbox. By default a command reads all files except secrets, writes to the workspace and a private /tmp, and has no network.

exec runs a script and waits up to yield_time_ms. A command that takes longer goes on as a session: its answer has session_id. Call wait once with a long timeout_ms instead of polling; it returns at the end, or earlier when a condition of wait_for holds: exit, quiet=2s (no output for 2 s), input (it waits for input), match=RE, port. write types into a session, signal ends it, screen shows the terminal of one with tty.

Answers show the beginning and the end of long output. Find the rest with read and search (RE2), or page with start_line and cursor.

A command that the sandbox blocked says what was blocked, and the smallest grant that allows it. Do not work around that. If the command needs it, call exec again with sandbox_permissions "with_additional_permissions", additional_permissions and a justification for the user; "require_escalated" leaves the sandbox and is rarely needed.

When the state is approval_needed, nothing ran yet. Tell the user what you want to run, why, and the command "sallyport approve ID". Then repeat the call with the same arguments and approval_id. exit_code 122 is forbidden, 123 denied by the user: do not try again.`

// A tool is one that the server has.
type tool struct {
	name, title, about string
	run                func(*Server, *call) (*answer, error)
	takes              []argument
	gives              []argument // beside the members of a result, where result is set
	result             bool
	reads, own         bool // it changes nothing; it touches only what is in the workspace
}

// An argument is a member of an object: its schema is an object in JSON without braces.
type argument struct {
	name, schema, about string
	needed              bool
}

// Schemas of members.
const (
	aText    = `"type":"string"`
	aTruth   = `"type":"boolean"`
	aNumber  = `"type":"integer"`
	aCode    = `"type":["integer","null"]`
	aList    = `"type":"array"`
	anObject = `"type":"object"`
	texts    = `"type":"array","items":{"type":"string"}`
	anID     = `"type":["string","integer"]`
)

// Arguments that several tools have.
var (
	session = argument{"session_id", anID, "from exec or list", true}
	tokens  = argument{"max_output_tokens", aNumber + `,"minimum":0,"maximum":100000,"default":3000`, "budget of the answer", false}
	waitFor = argument{"wait_for", texts + `,"default":["exit"]`, "exit, quiet=DUR, input, match=RE, port: the first ends the call", false}
	workdir = argument{"workdir", aText, "directory to run in, relative to the workspace (default)", false}
	sandbox = argument{"sandbox_permissions", aText + `,"enum":["use_default","require_escalated","with_additional_permissions"]`, "what to ask the user for", false}
)

func yield(usual string) argument {
	return argument{"yield_time_ms", aNumber + `,"default":` + usual, "how long the call waits, at most 300000", false}
}

// ofExec are the arguments that decide what runs.
var ofExec = []argument{
	{"cmd", aText, "script for the shell", true},
	workdir,
	{"shell", aText, "bash, sh or zsh", false},
	{"login", aTruth, "as a login shell", false},
	{"tty", aTruth, "give it a terminal of 80x24", false},
	{"stdin", aText, "its input; without it, input is closed", false},
	{"keep_stdin", aTruth, "keep input open for write", false},
	{"env", `"type":"object","additionalProperties":{"type":"string"}`, "variables to add", false},
	yield("10000"),
	waitFor,
	{"timeout_ms", aNumber, "kill it after so long", false},
	tokens,
	sandbox,
	{"additional_permissions", `"type":"object","additionalProperties":false,"properties":{"read":{` + texts + `},"write":{` + texts + `},"hosts":{` + texts + `}}`, "paths and hosts (NAME:PORT) to ask for", false},
	{"justification", aText, "why, for the user", false},
	{"prefix_rule", texts, "words that a rule to remember would begin with", false},
	{"approval_id", aText, "of an answer approval_needed, with the same other arguments", false},
}

// tools are all that there are.
var tools = []*tool{
	{name: "exec", title: "Run a command", result: true, run: (*Server).exec, takes: ofExec,
		about: "Run a shell script in the sandbox. Returns its output and exit code, or a session_id when it takes longer than yield_time_ms."},
	{name: "write", title: "Write to a session", result: true, run: (*Server).write,
		about: `Write to a session's input, or type on its terminal (\n is Enter, \u0003 Ctrl-C), and return new output. Empty chars poll.`,
		takes: []argument{session, {"chars", aText, "what to write", false}, {"close_stdin", aTruth, "then end the input", false},
			yield("250"), waitFor, tokens}},
	{name: "wait", title: "Wait for a session", result: true, reads: true, run: (*Server).wait,
		about: "Wait until a session ends or a condition of wait_for holds, and return new output. Prefer one long wait to polling.",
		takes: []argument{session, waitFor, {"timeout_ms", aNumber + `,"default":45000`, "longest wait, at most 300000; running out is no error", false},
			{"cursor", aText, "of an answer: show output from there on", false}, tokens}},
	{name: "read", title: "Read output", result: true, reads: true, run: (*Server).read,
		about: "Read or search the whole output of a session or run, also after its end, by lines.",
		takes: []argument{session, {"stream", aText + `,"enum":["output","stdout","stderr"],"default":"output"`, "", false},
			{"start_line", aNumber, "from 1; negative from the end", false}, {"max_lines", aNumber, "", false},
			{"search", aText, "show lines that match (RE2)", false}, {"context", aNumber + `,"default":2`, "lines around a match", false},
			{"max_matches", aNumber + `,"default":20`, "", false}, {"cursor", aText, "go on after an answer", false}, tokens},
		gives: []argument{{"start_line", aNumber, "", true}, {"end_line", aNumber, "", true}, {"lines_total", aNumber, "", true},
			{"bytes_total", aNumber, "", true}, {"matches", aList + `,"items":{"type":"object","required":["line","text"],"properties":{"line":{"type":"integer"},"text":{"type":"string"}}}`, "", false},
			{"matches_total", aNumber, "", false}}},
	{name: "screen", title: "Show a terminal", reads: true, run: (*Server).screen,
		about: "Show what the terminal of a session with tty displays now.", takes: []argument{session, tokens},
		gives: []argument{{"rows", aNumber, "", true}, {"cols", aNumber, "", true}, {"lines", texts, "", true},
			{"position", `"type":"object","required":["row","col","visible"],"properties":{"row":{"type":"integer"},"col":{"type":"integer"},"visible":{"type":"boolean"}}`, "", true},
			{"alternate", aTruth, "", true}, {"title", aText, "", true}}},
	{name: "signal", title: "Signal a session", result: true, run: (*Server).signal,
		about: "Send a signal to a session's processes.",
		takes: []argument{session, {"signal", aText + `,"default":"TERM"`, "TERM, INT, KILL, HUP, ...", false}, yield("500"), tokens},
		gives: []argument{{"delivered", aTruth, "", true}}},
	{name: "list", title: "List sessions", reads: true, run: (*Server).list,
		about: "List the sessions that are alive, the last one first.",
		takes: []argument{{"all", aTruth, "also those that have ended", false}, tokens},
		gives: []argument{{"sessions", aList + `,"items":{"type":"object","required":["session_id","cmd","workdir","state","tty","started","idle_ms","exit_code"],"properties":{"session_id":{"type":"string"},"cmd":{"type":"string"},"workdir":{"type":"string"},"state":{"type":"string"},"tty":{"type":"boolean"},"started":{"type":"string"},"idle_ms":{"type":"integer"},"exit_code":{"type":["integer","null"]}}}`, "", true},
			{"omitted", aNumber, "", false}}},
	{name: "patch", title: "Apply a patch", own: true, run: (*Server).patch,
		about: `Apply a patch to files: "*** Begin Patch", then "*** Add File: PATH" with +lines, "*** Update File: PATH" with @@ and lines that begin with " ", "-" or "+", or "*** Delete File: PATH", then "*** End Patch". All of it or nothing.`,
		takes: []argument{{"patch", aText, "the whole text", true}, workdir, sandbox, {"justification", aText, "why, for the user", false},
			{"approval_id", aText, "as for exec", false}, tokens},
		gives: []argument{{"applied", aTruth, "", true}, {"files", aList + `,"items":{"type":"object","required":["path","action"],"properties":{"path":{"type":"string"},"action":{"type":"string","enum":["add","update","delete","move"]}}}`, "", true},
			{"summary", aText, "", true}, {"state", aText, "", true}, {"exit_code", aCode, "", false}}},
	{name: "check", title: "Check a command", reads: true, run: (*Server).check,
		about: "Say whether a script would run, be asked about or be forbidden, and in what sandbox. Nothing runs.",
		takes: []argument{{"cmd", aText, "script for the shell", true}, workdir, sandbox, tokens},
		gives: []argument{{"decision", aText + `,"enum":["allow","prompt","forbidden"]`, "", true}, {"commands", aList, "", false},
			{"opaque", aTruth, "", false}, {"sandbox", anObject, "", false}}},
}

// resultMembers are those of an answer about a run.
var resultMembers = []argument{
	{"state", aText + `,"enum":["running","ended","approval_needed"]`, "", true},
	{"run", aText, "", false}, {"session_id", aText, "only while it runs", false},
	{"exit_code", aCode, "null while it runs; 122 forbidden, 123 refused, 124 timed out, 128+n by signal n", true},
	{"signal", aNumber, "", false}, {"timed_out", aTruth, "", false}, {"end", aText, "", false},
	{"duration_ms", aNumber, "", false}, {"cwd", aText, "", false},
	{"output", aText, "new output, both streams", true}, {"cursor", aText, "", false},
	{"truncated", aTruth, "", true}, {"omitted_bytes", aNumber, "", true}, {"original_token_count", aNumber, "", true},
	{"stdout_bytes", aNumber, "", false}, {"stderr_bytes", aNumber, "", false},
	{"reason", aText + `,"enum":["exit","quiet","input","match","port","time","signal"]`, "why the call ended", false},
	{"sandbox", anObject, "", false}, {"attempts", aNumber, "", false}, {"survivors", aNumber, "", false},
	{"denials", aList + `,"items":{"type":"object"}`, "", true}, {"denials_omitted", aNumber, "", false},
	{"approval", `"type":"object","required":["id","kind","reason","requires","offers","expires"]`, "", false},
	{"approvals", aList, "", false},
}

// known are the names of the arguments.
func (t *tool) known() []string {
	names := make([]string, len(t.takes))
	for i, a := range t.takes {
		names[i] = a.name
	}
	return names
}

// schema returns the schema of an object with some members. Others are not allowed in a closed one.
func schema(members []argument, closed bool) json.RawMessage {
	var all, needed []string
	for _, m := range members {
		s := m.schema
		if m.about != "" {
			s += fmt.Sprintf(`,"description":%s`, asJSON(m.about))
		}
		all = append(all, fmt.Sprintf("%q:{%s}", m.name, s))
		if m.needed {
			needed = append(needed, fmt.Sprintf("%q", m.name))
		}
	}
	text := `{"type":"object","properties":{` + strings.Join(all, ",") + "}"
	if len(needed) > 0 {
		text += `,"required":[` + strings.Join(needed, ",") + "]"
	}
	if closed {
		text += `,"additionalProperties":false`
	}
	return json.RawMessage(text + "}")
}

// described returns the tool as clients see it.
func (t *tool) described() *sdk.Tool {
	gives := t.gives
	if t.result {
		gives = append(append([]argument{}, resultMembers...), gives...)
	}
	destroys, open := !t.reads, !t.own && !t.reads
	return &sdk.Tool{Name: t.name, Title: t.title, Description: t.about, InputSchema: schema(t.takes, true),
		OutputSchema: schema(gives, false), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.reads,
			DestructiveHint: &destroys, IdempotentHint: t.reads, OpenWorldHint: &open}}
}
