// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExec: what exec returns for the usual commands.
func TestExec(t *testing.T) {
	c := open(t, nil)
	if err := os.Mkdir(filepath.Join(c.dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args members
		code int
		out  string
	}{
		"output and code":    {members{"cmd": "echo out; echo err >&2; exit 7"}, 7, "out\nerr\n"},
		"killed by a signal": {members{"cmd": "kill -TERM $$"}, 143, ""},
		"not found":          {members{"cmd": "exec /nowhere/x 2>/dev/null"}, 127, ""},
		"working directory": {members{"cmd": "pwd", "workdir": "sub"}, 0, filepath.Join(c.dir, "sub") +
			"\n"},
		"absolute directory": {members{"cmd": "pwd", "workdir": "/usr"}, 0, "/usr\n"},
		"no input":           {members{"cmd": "cat; echo end"}, 0, "end\n"},
		"input":              {members{"cmd": "cat", "stdin": "a\nb"}, 0, "a\nb"},
		"empty input":        {members{"cmd": "cat; echo end", "stdin": ""}, 0, "end\n"},
		"variables": {members{"cmd": "echo $A-$B", "env": members{"A": "x y", "B": "=-"}}, 0,
			"x y-=-\n"},
		"terminal": {members{"cmd": "test -t 0 && test -t 1 && stty size", "tty": true}, 0,
			"24 80\n"},
		"time limit":         {members{"cmd": "sleep 60", "timeout_ms": 100}, 124, ""},
		"another shell":      {members{"cmd": "echo ${0##*/}", "shell": "sh"}, 0, "sh\n"},
		"script like a flag": {members{"cmd": "-x 2>/dev/null || echo no"}, 0, "no\n"},
		"redraws":            {members{"cmd": `printf '1%%\r2%%\r3%%\rdone\n'`}, 0, "done\n"},
		"colors":             {members{"cmd": `printf '\033[31mred\033[0m\n'`}, 0, "red\n"},
		"characters":         {members{"cmd": `printf 'h\303\251\377\n'`}, 0, "hé\ufffd\n"},
		"numbers in any form": {members{"cmd": "echo x", "yield_time_ms": 1e4, "max_output_tokens": nil},
			0, "x\n"},
		"core environment": {members{"cmd": "echo ${XDG_STATE_HOME:-none}"}, 0, "none\n"},
		"waits for a match": {members{"cmd": "echo ready", "wait_for": []string{"match=nothing"}}, 0,
			"ready\n"},
		"prefix rule is quiet": {members{"cmd": "echo x", "prefix_rule": []string{"echo", "-x"}}, 0, "x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.call("exec", test.args).exits(t, test.code)
			equal(t, "output", f.Output, test.out)
			equal(t, "tokens", f.Truncated, false)
			if f.Run == "" || f.SessionID != "" || f.Reason != "exit" || !strings.HasPrefix(f.Cursor,
				f.Run+".") {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestWorkspace: the directory that a model chooses opens nothing, and the workspace stays open wherever
// a command runs.
func TestWorkspace(t *testing.T) {
	c := open(t, nil, "-a", "never")
	outside := outside(t)
	for _, dir := range []string{"sub", ".git/hooks"} {
		if err := os.MkdirAll(filepath.Join(c.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(c.dir, "link")); err != nil {
		t.Fatal(err)
	}
	c.call("exec", members{"cmd": "echo x > ../top && echo x > own", "workdir": "sub"}).exits(t, 0)
	for _, dir := range []string{outside, "link", "sub"} {
		f := c.call("exec", members{"cmd": "echo x > " + outside +
			"/file || echo x > ../.git/hooks/h || echo x > .git/hooks/h",
			"workdir": dir}).ok(t)
		if *f.ExitCode == 0 {
			t.Errorf("workdir %s: something outside was written: %s", dir, f.text)
		}
		if _, err := os.Stat(filepath.Join(outside, "file")); err == nil {
			t.Errorf("workdir %s opens a directory outside of the workspace", dir)
		}
	}
}

// TestSession: a command that takes longer goes on, and is written to, waited for, read and ended.
func TestSession(t *testing.T) {
	c := open(t, nil)
	f := c.call("exec", members{"cmd": "echo begin; read a; echo got $a; read b; echo end",
		"keep_stdin": true,
		"wait_for":   []string{"match=begin"}}).ok(t)
	if f.State != "running" || f.SessionID != f.Run || f.ExitCode != nil || f.Reason != "match" ||
		f.Output != "begin\n" {
		t.Fatalf("%+v", f)
	}
	id := f.SessionID
	list := c.call("list", nil).ok(t)
	if len(list.Sessions) != 1 || list.Sessions[0].ID != id || list.Sessions[0].State != "running" ||
		!strings.HasPrefix(list.Sessions[0].Cmd, "echo begin") {
		t.Errorf("%+v", list.Sessions)
	}
	cursor := f.Cursor
	f = c.call("write", members{"session_id": id, "chars": "x\n", "wait_for": []string{"match=got x"},
		"yield_time_ms": 10_000}).ok(t)
	equal(t, "what was written", f.Output, "got x\n")
	for range 2 { // the same cursor gives the same bytes
		equal(t, "from a cursor", c.call("wait", members{"session_id": id, "cursor": cursor,
			"timeout_ms": 1}).ok(t).Output, "got x\n")
	}
	f = c.call("wait", members{"session_id": id, "timeout_ms": 1}).ok(t)
	if f.Reason != "time" || f.Output != "" || f.State != "running" {
		t.Errorf("%+v", f)
	}
	f = c.call("write", members{"session_id": id, "chars": "y\n", "close_stdin": true,
		"wait_for":      []string{"exit"},
		"yield_time_ms": 10_000}).exits(t, 0)
	equal(t, "the rest", f.Output, "end\n")
	equal(t, "the whole", c.call("read", members{"session_id": id}).exits(t, 0).Output, "begin\ngot x\nend\n")
	if list = c.call("list", nil).ok(t); len(list.Sessions) != 0 {
		t.Errorf("%+v", list.Sessions)
	}
	if list = c.call("list", members{"all": true}).ok(t); len(list.Sessions) != 1 ||
		*list.Sessions[0].Code != 0 {
		t.Errorf("%+v", list.Sessions)
	}
	f = c.call("write", members{"session_id": id, "chars": "late"}).exits(t, 0)
	contains(t, f.text, "nothing was written")
}

// TestSignal: names with and without SIG, and what was delivered.
func TestSignal(t *testing.T) {
	c := open(t, nil)
	for _, name := range []string{"", "TERM", "SIGKILL", "hup"} {
		f := c.call("exec", members{"cmd": "echo up; exec sleep 60", "wait_for": []string{"match=up"}}).ok(t)
		args := members{"session_id": f.SessionID, "yield_time_ms": 10_000}
		if name != "" {
			args["signal"] = name
		}
		got := c.call("signal", args).ok(t)
		if !got.Delivered || got.State != "ended" || got.End != "signaled" {
			t.Errorf("%q: %+v", name, got)
		}
		if got = c.call("signal", args).ok(t); got.Delivered {
			t.Errorf("%q is delivered to what has ended", name)
		}
	}
}

// TestScreen: the terminal of a session.
func TestScreen(t *testing.T) {
	c := open(t, nil)
	f := c.call("exec", members{"cmd": `printf '\033]0;title\007\033[?1049h\033[2J\033[3;5Hhere'; read x`,
		"tty":      true,
		"wait_for": []string{"match=here"}}).ok(t)
	s := c.call("screen", members{"session_id": f.SessionID}).ok(t)
	if s.Rows != 24 || s.Cols != 80 || len(s.Lines) != 24 || s.Lines[2] != "    here" || !s.Alternate ||
		s.Title != "title" ||
		s.Position.Row != 2 || s.Position.Col != 8 || !s.Position.Visible {
		t.Errorf("%+v", s)
	}
	contains(t, s.text, "here")
	plain := c.call("exec", members{"cmd": "true"}).exits(t, 0)
	if bad := c.call("screen", members{"session_id": plain.Run}); !bad.failed || !strings.Contains(bad.text,
		"tty") {
		t.Errorf("%+v", bad)
	}
}

// TestDenied: what was blocked is a fact, with the smallest grant.
func TestDenied(t *testing.T) {
	outside := outside(t)
	file := filepath.Join(outside, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, nil, "-a", "never")
	f := c.call("exec", members{"cmd": "echo x > " + file + " || exit 1"}).exits(t, 1)
	if len(f.Denials) != 1 || f.Denials[0].Op != "write" || f.Denials[0].Path != file ||
		f.Denials[0].Grant != "--rw "+file {
		t.Errorf("%+v", f.Denials)
	}
	contains(t, f.text, "blocked: write "+file, "--rw "+file)
}

// TestForbidden: what rules or the policy forbid is an answer.
func TestForbidden(t *testing.T) {
	c := open(t, nil, "-a", "never")
	f := c.call("exec", escalated("echo ran")).exits(t, 122)
	if f.End != "forbidden" || f.Run == "" || !strings.Contains(f.Output, "approval is never") {
		t.Errorf("%+v", f)
	}
}

// TestCheckTool: nothing runs.
func TestCheckTool(t *testing.T) {
	c := open(t, nil)
	f := c.call("check", members{"cmd": "touch made && ls"}).ok(t)
	equal(t, "decision", f.Decision, "allow")
	if _, err := os.Stat(filepath.Join(c.dir, "made")); err == nil {
		t.Error("the command ran")
	}
	if f = c.call("check", members{"cmd": "ls", "sandbox_permissions": "require_escalated"}).ok(
		t); f.Decision != "prompt" {
		t.Errorf("%+v", f)
	}
}

// TestPatchTool: all of a patch or nothing of it.
func TestPatchTool(t *testing.T) {
	c := open(t, nil)
	f := c.call("patch", members{
		"patch": "*** Begin Patch\n*** Add File: a/new\n+text\n*** End Patch\n"}).ok(t)
	if !f.Applied || len(f.Files) != 1 || f.Files[0].Path != "a/new" || f.Files[0].Action != "add" ||
		!strings.Contains(f.Summary, "A a/new") {
		t.Errorf("%+v", f)
	}
	f = c.call("patch", members{"workdir": "a",
		"patch": "*** Begin Patch\n*** Update File: new\n*** Move to: other\n" +
			"@@\n-text\n+more\n*** End Patch\n"}).ok(t)
	if !f.Applied || len(f.Files) != 1 || f.Files[0].Action != "move" {
		t.Errorf("%+v", f)
	}
	f = c.call("patch", members{
		"patch": "*** Begin Patch\n*** Add File: .envrc\n+text\n*** End Patch\n"}).ok(t)
	if len(f.New) != 1 || f.New[0].Path != filepath.Join(c.dir, ".envrc") || f.New[0].Grant == "" {
		t.Errorf("new: %+v", f.New)
	}
	text, err := os.ReadFile(filepath.Join(c.dir, "a/other"))
	if err != nil || string(text) != "more\n" {
		t.Errorf("%q, %v", text, err)
	}
	for _, bad := range []string{"no patch", "*** Begin Patch\n*** Delete File: missing\n*** End Patch\n"} {
		if f = c.call("patch", members{"patch": bad}); !f.failed {
			t.Errorf("%q: %+v", bad, f)
		}
	}
}
