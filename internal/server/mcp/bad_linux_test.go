// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
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

// A badLine is a line, and the errors and IDs in the answers to it.
type badLine struct {
	line string
	want []members // nil is no answer
}

func failure(code int, id string) members { return members{"code": float64(code), "id": id} }

func badLines() map[string]badLine {
	parse, invalid, known := failure(-32700, "null"), failure(-32600, "null"), failure(-32600, "7")
	const cancels = "notifications/cancelled" //nolint:misspell // its name
	return map[string]badLine{
		"nothing":         {"", nil},
		"spaces":          {" \t\r", nil},
		"no JSON":         {"x", []members{parse}},
		"half a message":  {`{"jsonrpc":"2.0","id":7,"method"`, []members{parse}},
		"two in a line":   {`{"jsonrpc":"2.0","id":7,"method":"ping"} {}`, []members{parse}},
		"not UTF-8":       {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}", []members{parse}},
		"NUL":             {"\x00", []members{parse}},
		"a number":        {"5", []members{invalid}},
		"null":            {"null", []members{invalid}},
		"a string":        {`"ping"`, []members{invalid}},
		"nothing in it":   {"{}", []members{invalid}},
		"empty batch":     {"[]", []members{invalid}},
		"id is a list":    {`{"jsonrpc":"2.0","id":[7],"method":"ping"}`, []members{invalid}},
		"id is an object": {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, []members{invalid}},
		"id is true":      {`{"jsonrpc":"2.0","id":true,"method":"ping"}`, []members{invalid}},
		"id is null":      {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, []members{invalid}},
		"id is a fraction": {`{"jsonrpc":"2.0","id":7.5,"method":"ping"}`,
			[]members{invalid}},
		"id is beyond what is exact": {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`,
			[]members{invalid}},
		"two ids":     {`{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}`, []members{invalid}},
		"three ids":   {`{"id":7,"jsonrpc":"2.0","id":7,"id":7,"method":"ping"}`, []members{invalid}},
		"two methods": {`{"jsonrpc":"2.0","id":7,"method":"ping","method":"x"}`, []members{known}},
		"two escaped": {`{"jsonrpc":"2.0","id":7,"method":"ping","m\u0065thod":"x"}`, []members{known}},
		"two params": {`{"jsonrpc":"2.0","id":7,"method":"ping","params":{},"params":{}}`,
			[]members{known}},
		"no version":       {`{"id":7,"method":"ping"}`, []members{known}},
		"another version":  {`{"jsonrpc":"1.0","id":7,"method":"ping"}`, []members{known}},
		"method is number": {`{"jsonrpc":"2.0","id":7,"method":5}`, []members{known}},
		"no method":        {`{"jsonrpc":"2.0","id":7}`, []members{known}},
		"too deep": {`{"jsonrpc":"2.0","id":7,"method":"ping","params":` + strings.Repeat("[", 2000) +
			strings.Repeat("]", 2000) + "}", []members{known}},
		"answer to nothing":         {`{"jsonrpc":"2.0","id":7,"result":{}}`, nil},
		"answer without id":         {`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}`, nil},
		"answer with a bad error":   {`{"jsonrpc":"2.0","id":7,"error":"x"}`, nil},
		"notification of nothing":   {`{"jsonrpc":"2.0","method":"notifications/x"}`, nil},
		"cancels what is no id":     {`{"jsonrpc":"2.0","method":"` + cancels + `","params":{"requestId":{}}}`, nil},
		"cancels without params":    {`{"jsonrpc":"2.0","method":"` + cancels + `"}`, nil},
		"batch of one that is none": {`[5]`, []members{invalid}},
		"batch, one is none": {`[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":{}}]`,
			[]members{invalid, {"id": "7"}}},
		"batch with an id twice": {`[{"jsonrpc":"2.0","id":7,"method":"ping"},` +
			`{"jsonrpc":"2.0","id":7,"method":"ping"}]`, []members{known, {"id": "7"}}},
		"batch of notifications": {`[{"jsonrpc":"2.0","method":"notifications/x"},` +
			`{"jsonrpc":"2.0","method":"notifications/x"}]`, nil},
		"batch in a batch": {`[[]]`, []members{invalid}},
	}
}

// TestBadLines: what is no message is answered with an error of JSON-RPC, and the next line is read.
func TestBadLines(t *testing.T) {
	const ping, pong = `{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":"p","result":{}}`
	c, _ := speak(t)
	for name, test := range badLines() {
		t.Run(name, func(t *testing.T) {
			c.t = t
			c.send(test.line)
			c.send(ping)
			var got []members
			for ponged := false; !ponged || len(got) < len(test.want); { // answers come in any order
				line := c.next()
				if line == pong {
					ponged = true
					continue
				}
				list := line
				if !strings.HasPrefix(line, "[") {
					list = "[" + line + "]"
				}
				var answers []struct {
					ID    json.RawMessage
					Error *struct {
						Code    int
						Message string
					}
				}
				if err := json.Unmarshal([]byte(list), &answers); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				for _, a := range answers {
					if a.Error == nil {
						got = append(got, members{"id": string(a.ID)})
						continue
					}
					got = append(got, failure(a.Error.Code, string(a.ID)))
					if a.Error.Message == "" {
						t.Errorf("%s says nothing", line)
					}
				}
			}
			slices.SortFunc(got, func(a, b members) int {
				return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
			})
			equal(t, "answers", got, test.want)
		})
	}
	c.t = t
	c.send("no end, no message")
	contains(t, c.next(), "-32700")
	if _, err := io.WriteString(c.in, "["); err != nil { // and no end of the line
		t.Fatal(err)
	}
	_ = c.in.Close()
	contains(t, c.next(), "-32700")
	if err := <-c.done; err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
