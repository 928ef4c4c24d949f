// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// arguments read the members of a tool's arguments, and keep the first error.
type arguments struct {
	tool string
	from map[string]json.RawMessage
	err  error
}

// read returns the arguments of a call to a tool that knows some names. Null stands for none.
func read(tool string, data []byte, known []string) *arguments {
	if len(data) == 0 || string(data) == "null" {
		data = []byte("{}")
	}
	a := &arguments{tool: tool}
	if a.from, a.err = strict.Object(data); a.err != nil {
		a.err = fmt.Errorf("invalid arguments of %s: %w; pass one JSON object", tool, a.err)
		return a
	}
	for name, value := range a.from {
		switch {
		case !slices.Contains(known, name):
			a.err = fmt.Errorf("unknown argument %s of %s%s", syntax.QuoteFlag(name), tool,
				syntax.NearestClause(name, known, "it takes "+strings.Join(known, ", ")))
		case string(value) == "null":
			delete(a.from, name)
		}
	}
	return a
}

// fail records what is wrong with an argument.
func (a *arguments) fail(name, format string, args ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("argument %s of %s: %s", name, a.tool, text.Line(fmt.Sprintf(format, args...)))
	}
}

// take decodes an argument into v, and leaves v alone if there is none.
func take[T any](a *arguments, name, kind string, v *T) bool {
	value, ok := a.from[name]
	if ok && json.Unmarshal(value, v) != nil {
		a.fail(name, "it must be %s, not %s", kind, strict.TypeName(value))
		return false
	}
	return ok
}

func (a *arguments) text(name string) (s string) {
	if take(a, name, "a string", &s); strings.ContainsRune(s, 0) {
		a.fail(name, "it has a NUL character; remove it")
	}
	return s
}

func (a *arguments) truth(name string) (b bool) {
	take(a, name, "true or false", &b)
	return b
}

func (a *arguments) list(name string) (l []string) {
	take(a, name, "a list of strings", &l)
	return l
}

// whole reads a whole number in any form: models write 1e3 and 1000.0.
func (a *arguments) whole(name string, usual int) int {
	f := float64(usual)
	const most = 1 << 53 // beyond it not every whole number is a float64
	if take(a, name, "a whole number", &f) && (f != math.Trunc(f) || math.Abs(f) > most) {
		a.fail(name, "it must be a whole number")
	}
	return int(f)
}

// within reads a whole number, and clamps it.
func (a *arguments) within(name string, usual, least, most int) int {
	return min(max(a.whole(name, usual), least), most)
}

func (a *arguments) milliseconds(name string, usual, least int) time.Duration {
	return time.Duration(a.within(name, usual, least, longestWait)) * time.Millisecond
}

// The budget of an answer, in tokens of four bytes.
const (
	usualTokens = 3000
	mostTokens  = 100_000
)

func (a *arguments) tokens() int {
	return a.within("max_output_tokens", usualTokens, 0, mostTokens)
}

// conditions reads wait_for; without it the end of the run ends a wait.
func (a *arguments) conditions() (c runs.Conditions) {
	for _, one := range a.list("wait_for") {
		if err := c.Add(one); err != nil {
			a.fail("wait_for", "%v", err)
		}
	}
	if _, err := runs.Pattern(c.Match); err != nil {
		a.fail("wait_for", "%v", err)
	}
	return c
}

// session reads session_id, which is a string or a whole number.
func (a *arguments) session() string {
	value, ok := a.from["session_id"]
	if !ok {
		a.fail("session_id", "it is missing; list shows the sessions")
		return ""
	}
	var id string
	if json.Unmarshal(value, &id) == nil {
		return id
	}
	n, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil {
		a.fail("session_id", "it must be a string or a whole number, not %s", strict.TypeName(value))
	}
	return strconv.FormatUint(n, 10)
}

// The most that exec takes.
const (
	maxScript  = 1 << 20 // bytes of cmd
	maxInput   = 1 << 20 // bytes of stdin and chars
	maxEntries = 1000    // of lists and objects
	maxEntry   = 64 << 10
)

// An execution is what the arguments of exec ask for.
type execution struct {
	flags    []string // of run, the script included
	patch    string   // in the place of a script; empty for none
	workdir  string   // absolute; empty for the workspace
	env      bool     // it has variables of its own
	tty      bool
	stdin    string
	opens    bool // its standard input
	keeps    bool // it open
	yield    time.Duration
	until    runs.Conditions
	tokens   int
	approval string // the ID of a question
	identity string // of everything that decides what runs
	trace    event.TraceContext
}

// execution reads the arguments of exec, check and patch for a server.
func (a *arguments) execution(s *Server) *execution {
	script := a.text("cmd")
	x := &execution{patch: a.text("patch"), tty: a.truth("tty"), stdin: a.text("stdin"),
		keeps: a.truth("keep_stdin"),
		yield: a.milliseconds("yield_time_ms", 10_000, 250), until: a.conditions(),
		tokens:   a.tokens(),
		approval: a.text("approval_id")}
	switch {
	case a.tool == "patch" && x.patch == "":
		a.fail("patch", `it is missing or empty; pass a text that begins with "*** Begin Patch"`)
	case len(x.patch) > maxPatch:
		a.fail("patch", "it has more than %d bytes; split it", maxPatch)
	case a.tool != "patch" && strings.TrimSpace(script) == "":
		a.fail("cmd", "it is missing or empty; pass the script to run")
	}
	_, given := a.from["stdin"]
	x.opens = !x.tty && (given || x.keeps)
	if len(script) > maxScript || len(x.stdin) > maxInput {
		a.fail("cmd", "cmd and stdin take at most %d bytes each; write the rest to a file", maxScript)
	}
	if x.workdir = a.text("workdir"); x.workdir != "" && !filepath.IsAbs(x.workdir) {
		x.workdir = filepath.Join(s.opts.Root, x.workdir)
	}
	x.flags = append([]string{"--env-inherit=core"}, s.opts.Args...)
	if script != "" {
		x.flags = append(append([]string{"--shell=" + s.shell()}, x.flags...), a.environment()...)
	}
	if shell := a.text("shell"); shell != "" {
		x.flags = append(x.flags, "--shell="+shell)
	}
	if a.truth("login") {
		x.flags = append(x.flags, "--login")
	}
	if ms := a.whole("timeout_ms", 0); ms > 0 {
		x.flags = append(x.flags, fmt.Sprintf("--timeout=%dms", ms))
	} else if ms < 0 {
		a.fail("timeout_ms", "it must not be negative; leave it out for no limit")
	}
	_, x.env = a.from["env"]
	a.permissions(x)
	if x.env && slices.Contains(x.flags, escalate) {
		a.fail("env", "a question about leaving the sandbox does not show it; write NAME=value into cmd")
	}
	if script != "" {
		x.flags = append(x.flags, "--command="+script)
	}
	if rule := a.list("prefix_rule"); len(rule) > 0 {
		if len(rule) > maxEntries || slices.Contains(rule, "--") || slices.Contains(rule, "") {
			a.fail("prefix_rule", "it takes words of a command, without empty ones and without --")
		}
		x.flags = append(append(append(x.flags, "--prefix-rule"), rule...), "--")
	}
	x.identity = string(asJSON([]any{x.flags, x.workdir, x.tty, x.stdin, x.opens, x.keeps, x.patch}))
	return x
}

// environment returns the flags for env.
func (a *arguments) environment() (flags []string) {
	var env map[string]string
	take(a, "env", "an object of strings", &env)
	if len(env) > maxEntries {
		a.fail("env", "it has more than %d members", maxEntries)
	}
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) ||
			len(value) > maxEntry {
			a.fail("env",
				"%s is no variable; names have no = and no NUL, and values are at most %d bytes long",
				syntax.QuoteFlag(name), maxEntry)
		}
		flags = append(flags, "--env="+name+"="+value)
	}
	slices.Sort(flags)
	return flags
}

// escalate is the flag of a command that asks to leave the sandbox.
const escalate = "--escalate"

// permissions adds the flags for what a model asks for beyond the sandbox. Nothing of it opens anything
// without an answer.
func (a *arguments) permissions(x *execution) {
	var more struct{ Read, Write, Hosts []string }
	if value, ok := a.from["additional_permissions"]; ok {
		inner := read("additional_permissions", value, []string{"read", "write", "hosts"})
		more.Read, more.Write, more.Hosts = inner.list("read"), inner.list("write"), inner.list("hosts")
		if inner.err != nil && a.err == nil {
			a.err = inner.err
		}
	}
	asked := len(more.Read) + len(more.Write) + len(more.Hosts)
	switch how := a.text("sandbox_permissions"); {
	case how == "with_additional_permissions" && asked == 0:
		a.fail("sandbox_permissions",
			"with_additional_permissions needs additional_permissions with read, write or hosts")
	case how != "with_additional_permissions" && asked > 0:
		a.fail("additional_permissions", `it needs sandbox_permissions "with_additional_permissions"`)
	case how == "require_escalated":
		x.flags = append(x.flags, escalate)
	case how != "" && how != "use_default" && how != "with_additional_permissions":
		a.fail("sandbox_permissions",
			"unknown word %s; use use_default, require_escalated or with_additional_permissions",
			syntax.QuoteFlag(how))
	}
	if asked > maxEntries {
		a.fail("additional_permissions", "it has more than %d members", maxEntries)
	}
	for _, path := range more.Read {
		x.flags = append(x.flags, "--ask-for=read:"+a.place(path))
	}
	for _, path := range more.Write {
		x.flags = append(x.flags, "--ask-for="+a.place(path))
	}
	for _, host := range more.Hosts {
		if host == "" || strings.ContainsAny(host, "/\x00") || strings.HasPrefix(host, ".") ||
			strings.HasPrefix(host, "~") || strings.HasPrefix(host, "read:") {
			a.fail("additional_permissions", "%s is no host; use NAME or NAME:PORT", syntax.QuoteFlag(host))
		}
		x.flags = append(x.flags, "--ask-for="+host)
	}
	wish := asked > 0 || slices.Contains(x.flags, escalate)
	if wish && len(x.stdin) > maxShown {
		a.fail("stdin", "it has more than %d bytes, too many to be shown in a question; write it to a file", maxShown)
	}
	why := a.text("justification")
	if more := x.given(); more != "" {
		why = strings.TrimPrefix(why+" "+more, " ")
	}
	if why != "" {
		x.flags = append(x.flags, "--justification="+why)
	}
}

// maxShown is how many bytes of standard input a question shows.
const maxShown = 2000

// given says what a command reads beside its script, for those who are asked about it: an approval covers
// what was shown.
func (x *execution) given() string {
	var all []string
	switch {
	case len(x.stdin) > maxShown:
		all = append(all, fmt.Sprintf("with %d bytes of standard input", len(x.stdin)))
	case x.stdin != "":
		all = append(all, "with the standard input "+text.Word(x.stdin))
	}
	if x.keeps || x.tty {
		all = append(all, "with input that the agent sends later")
	}
	if all == nil {
		return ""
	}
	return "(" + strings.Join(all, ", ") + ")"
}

// place returns a path that --ask-for takes for one.
func (a *arguments) place(path string) string {
	if path == "" || strings.ContainsRune(path, 0) {
		a.fail("additional_permissions", "a path is empty or has a NUL character")
	}
	if filepath.IsAbs(path) || strings.HasPrefix(path, "~") {
		return path
	}
	return "./" + path
}
