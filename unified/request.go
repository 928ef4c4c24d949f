// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// A Request is a call of exec_command. Only Command must be set.
type Request struct {
	// CallID is the caller's name for the call, not one of its arguments. Responses, events
	// and lists have it; it may be empty.
	CallID string

	// Command is a script for the shell (cmd).
	Command string
	// Dir is the working directory (workdir), relative to Tools.Cmd.Dir; empty means that.
	Dir string
	// Shell names the shell; empty means the user's own.
	Shell string
	// Login makes it a login shell; nil means no.
	Login *bool

	// TTY gives the command a terminal of its own; false gives it pipes.
	TTY bool
	// Stdin says what a command without a terminal reads from. The zero Stdin is the null
	// device, and write_stdin cannot write to it.
	Stdin Stdin

	// Yield is how long the call waits for the command at most; 0 means
	// [DefaultStartYield]. It is at least [MinYield], at most [MaxYield].
	Yield time.Duration
	// MaxOutputTokens is how much output the response shows, in tokens of four bytes;
	// nil means [DefaultOutputTokens]. Tools.OutputTokens limits it.
	MaxOutputTokens *int
	// Until names conditions that end the wait earlier than Yield.
	Until Conditions

	// Permissions asks for more than the sandbox permits, and Justification says why.
	Permissions   Permissions
	Justification string
	// PrefixRule proposes which commands an approval could cover from then on. The package
	// passes it on and decides nothing by it. Nil means no proposal.
	PrefixRule []string
	// Additional are the permissions for WithAdditional, a JSON object.
	Additional json.RawMessage

	// EnvironmentID names the machine to run on; empty means the only one.
	EnvironmentID string
}

// Conditions end the wait of a call before its time is over; the first one that holds
// does. The end of the process always does. The zero Conditions have InputWait alone.
type Conditions struct {
	// Idle ends it when there was no output for that long, since the call waits; 0 means
	// never.
	Idle time.Duration
	// Match ends it when the output since the last response matches, without control
	// sequences, or what followed the last match; nil means never.
	Match *regexp.Regexp
	// InputWait ends it when the program waits for input. Nil means true on a terminal,
	// unless Tools.Compatible is set, and false on pipes.
	InputWait *bool
	// MinBytes ends it when there is that much output; 0 means never.
	MinBytes int
}

// Stdin says what a command without a terminal reads from.
type Stdin string

// The kinds of standard input. The empty Stdin is StdinNull.
const (
	StdinNull Stdin = "null" // the null device
	StdinPipe Stdin = "pipe" // a pipe that stays open for write_stdin
	StdinTTY  Stdin = "tty"  // a terminal, as with Request.TTY
)

// Permissions says what a command asks for beyond the sandbox's policy.
type Permissions string

// The kinds of permissions. The empty Permissions asks for nothing and excludes a
// justification.
const (
	UseDefault Permissions = "use_default" // nothing
	// to run outside the sandbox, which needs an approval
	RequireEscalated Permissions = "require_escalated"
	// single paths beyond the sandbox, which needs an approval
	WithAdditional Permissions = "with_additional_permissions"
)

// UnmarshalJSON decodes the arguments of a call. Unknown and repeated keys and values of
// other types are an [ErrArgument]; a null value counts as absent. CallID stays.
func (q *Request) UnmarshalJSON(data []byte) error {
	const tool = "exec_command"
	from, err := parseObject(tool, data,
		"cmd", "workdir", "shell", "login", "tty", "stdin", "yield_time_ms", "max_output_tokens",
		"sandbox_permissions", "justification", "prefix_rule", "additional_permissions", "environment_id",
		"until_idle_ms", "until_regex", "until_input_wait", "min_bytes")
	if err != nil {
		return err
	}
	r := &reader{tool: tool, from: from}
	r.require("cmd")
	parsed := Request{
		CallID: q.CallID, Command: r.text("cmd"), Dir: r.text("workdir"), Shell: r.text("shell"),
		Login: r.truth("login"),
		Stdin: Stdin(r.text("stdin")), Yield: r.milliseconds("yield_time_ms"), MaxOutputTokens: r.tokens(),
		Until:       r.conditions(),
		Permissions: Permissions(r.text("sandbox_permissions")), Justification: r.text("justification"),
		Additional: from["additional_permissions"], EnvironmentID: r.text("environment_id"),
	}
	take(r, "tty", "true or false", &parsed.TTY)
	take(r, "prefix_rule", "a list of strings", &parsed.PrefixRule)
	if a := parsed.Additional; len(a) > 0 && a[0] != '{' {
		r.fail("additional_permissions", "must be an object", nil)
	}
	if r.err == nil {
		r.err = parsed.check()
	}
	if r.err != nil {
		return r.err
	}
	*q = parsed
	return nil
}

// check refuses an invalid request.
func (q *Request) check() error {
	fail := func(argument, format string, args ...any) error {
		return badArgument("exec_command", argument, fmt.Sprintf(format, args...), nil)
	}
	switch {
	case !slices.Contains([]Stdin{"", StdinNull, StdinPipe, StdinTTY}, q.Stdin):
		return fail("stdin", "%q is not null, pipe or tty", q.Stdin)
	case q.TTY && (q.Stdin == StdinNull || q.Stdin == StdinPipe):
		return fail("stdin", "it is %s and tty is true; use one of the two", q.Stdin)
	case !slices.Contains([]Permissions{"", UseDefault, RequireEscalated, WithAdditional}, q.Permissions):
		return fail("sandbox_permissions",
			"%q is not use_default, require_escalated or with_additional_permissions", q.Permissions)
	case q.Yield < 0:
		return fail("yield_time_ms", "must be 0 or more")
	}
	if err := q.Until.check("exec_command"); err != nil {
		return err
	}
	return q.checkPermissions()
}

// checkPermissions refuses wishes for permissions that cannot be decided.
func (q *Request) checkPermissions() error {
	switch {
	case q.Justification != "" && q.Permissions == "":
		return invalid("`justification` requires an explicit `sandbox_permissions`; use `sandbox_permissions: \"require_escalated\"` for unsandboxed execution, or omit `justification`.")
	case len(q.Additional) > 0 && q.Permissions != WithAdditional:
		return invalid("`additional_permissions` requires `sandbox_permissions` set to `with_additional_permissions`")
	}
	return nil
}

// check refuses invalid conditions.
func (c *Conditions) check(tool string) error {
	switch {
	case c.Idle < 0:
		return badArgument(tool, "until_idle_ms", "must be 0 or more", nil)
	case c.MinBytes < 0:
		return badArgument(tool, "min_bytes", "must be 0 or more", nil)
	}
	return nil
}

// input returns what the command reads from.
func (q *Request) input() Stdin {
	if q.TTY {
		return StdinTTY
	}
	return cmp.Or(q.Stdin, StdinNull)
}

// A WriteRequest is a call of write_stdin. Only SessionID must be set.
type WriteRequest struct {
	// SessionID is the number that a Response gave (session_id).
	SessionID int
	// Chars is written to the program as it is. Empty writes nothing and only waits. For a
	// program without a terminal U+0003 alone is an interrupt.
	Chars string
	// EOF ends the input after Chars: the end-of-file character on a terminal, the
	// end of the pipe otherwise.
	EOF bool

	// Yield is how long the call waits at most; 0 means the least:
	// [MinYield], or [MinPoll] for a call that writes nothing.
	Yield time.Duration
	// MaxOutputTokens is as in [Request].
	MaxOutputTokens *int
	// Until names conditions that end the wait earlier than Yield.
	Until Conditions
}

// UnmarshalJSON decodes the arguments of a call as [Request.UnmarshalJSON] does.
func (w *WriteRequest) UnmarshalJSON(data []byte) error {
	const tool = "write_stdin"
	from, err := parseObject(tool, data, "session_id", "chars", "eof", "yield_time_ms", "max_output_tokens",
		"until_idle_ms", "until_regex", "until_input_wait", "min_bytes")
	if err != nil {
		return err
	}
	r := &reader{tool: tool, from: from}
	r.require("session_id")
	parsed := WriteRequest{
		Chars: r.text("chars"), Yield: r.milliseconds("yield_time_ms"), MaxOutputTokens: r.tokens(),
		Until: r.conditions(),
	}
	parsed.SessionID, _ = r.count("session_id")
	take(r, "eof", "true or false", &parsed.EOF)
	if r.err != nil {
		return r.err
	}
	*w = parsed
	return nil
}

// check refuses an invalid request.
func (w *WriteRequest) check() error {
	if w.Yield < 0 {
		return badArgument("write_stdin", "yield_time_ms", "must be 0 or more", nil)
	}
	return w.Until.check("write_stdin")
}

// polls reports whether the call writes nothing.
func (w *WriteRequest) polls() bool { return w.Chars == "" && !w.EOF }
