// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/google/jsonschema-go/jsonschema"
)

// buildLog prints about 5 MB with one error in the middle.
const buildLog = `of='[%.0f/80000] compiling a package of the very long build, which is fine so far'; ` +
	`seq -f "$of" 0 39999; ` +
	`echo "main.c:17: error: undeclared name frobnicate"; seq -f "$of" 40000 79999; exit 2`

// TestBuildLog: the bar of the issue: an answer about 5 MB has at most 4 000 tokens, and one read finds
// the error.
func TestBuildLog(t *testing.T) {
	c := open(t, nil)
	f := c.call("exec", members{"cmd": buildLog, "yield_time_ms": 60_000}).exits(t, 2)
	if len(f.text) > 16_000 || f.size > 16_000 || !f.Truncated || f.Omitted < 4<<20 || f.Tokens < 1<<20 {
		t.Errorf("%d bytes of text, %d of JSON, %d omitted, %d tokens", len(f.text), f.size, f.Omitted,
			f.Tokens)
	}
	contains(t, f.Output, "[0/80000]", "[79999/80000]", "bytes, ",
		" lines left out; read them with read and search")
	equal(t, "links", f.links, []string{"sallyport://runs/" + f.Run + "/output"})
	found := c.call("read", members{"session_id": f.Run, "search": "error:"}).ok(t)
	if len(found.Matches) != 1 || found.Matches[0].Line != 40_001 || found.Total != 1 ||
		found.LinesTotal != 80_001 {
		t.Errorf("%+v", found)
	}
	contains(t, found.Output, "40000- ", "40001: main.c:17: error: undeclared name frobnicate", "40003- ")
	res, err := c.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: f.links[0]})
	if err != nil || len(res.Contents) != 1 || len(res.Contents[0].Text) < 5<<20 {
		t.Errorf("%v, %d", err, len(res.Contents[0].Text))
	}
}

// TestBudget: text and JSON stay within each budget, whatever is printed.
func TestBudget(t *testing.T) {
	c := open(t, nil)
	for name, cmd := range map[string]string{
		"lines":      `seq -f 'line %.0f' 20000`,
		"quotes":     `seq -f '"\"<>&"%.0f' 20000`,
		"characters": `seq -f $(printf '\342\202\254%%.0f') -s '' 20000`,
		"broken":     `head -c 200000 /dev/zero | tr '\0' '\377'`,
		"one line":   `head -c 3000000 /dev/zero | tr '\0' 'x'`,
		"denials":    `i=0; while [ $i -lt 60 ]; do echo x > /etc/none-$i; i=$((i+1)); done`,
	} {
		t.Run(name, func(t *testing.T) {
			var run string
			for _, tokens := range []int{0, 1, 10, 500, 3000, 100_000} {
				args := members{"cmd": cmd, "max_output_tokens": tokens, "yield_time_ms": 60_000}
				tool := "exec"
				if run != "" {
					tool, args = "read", members{"session_id": run, "max_output_tokens": tokens}
				}
				f := c.call(tool, args).ok(t)
				run = f.Run
				if most := 4*tokens + 4096; len(f.text) > most || f.size > most {
					t.Errorf("%d tokens: %d bytes of text, %d of JSON, want at most %d", tokens,
						len(f.text), f.size, most)
				}
				if tokens == 0 && (f.Output != "" || f.Tokens == 0) {
					t.Errorf("%+v", f)
				}
				if !utf8.ValidString(f.text) || strings.Contains(f.Output, "\ufffd") && name != "broken" {
					t.Errorf("%d tokens: a character is cut", tokens)
				}
			}
		})
	}
}

// TestRead: ranges, streams, pages and searches.
func TestRead(t *testing.T) {
	c := open(t, nil)
	// Two pipes have no order, and so one run has one.
	const loop = `i=1; while [ $i -le 100 ]; do echo "out $i"; echo "err $i" >&2; i=$((i+1)); done`
	run := c.call("exec", members{"cmd": "exec 2>&1; " + loop}).exits(t, 0).Run
	apart := c.call("exec", members{"cmd": loop}).exits(t, 0).Run
	for name, test := range map[string]struct {
		args  members
		out   string
		start int
		last  int
		total int
	}{
		"from a line":  {members{"start_line": 3, "max_lines": 2}, "out 2\nerr 2\n", 3, 4, 200},
		"from the end": {members{"start_line": -1}, "err 100\n", 200, 200, 200},
		"a stream":     {members{"stream": "stderr", "start_line": 99}, "err 99\nerr 100\n", 99, 100, 100},
		"beyond":       {members{"start_line": 1000}, "", 0, 0, 200},
		"few lines":    {members{"max_lines": 1}, "out 1\n", 1, 1, 200},
		"search": {members{"search": `^out 5$`, "context": 1}, "8- err 4\n9: out 5\n10- err 5\n", 8,
			10, 200},
		"two places": {members{"search": `^out (5|50)$`, "context": 0}, "9: out 5\n--\n99: out 50\n", 9,
			99, 200},
		"no match": {members{"search": "none"}, "", 0, 0, 200},
		"search stdout": {members{"search": "100", "stream": "stdout", "context": 1},
			"99- out 99\n100: out 100\n", 99, 100, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if test.args["session_id"] = run; test.args["stream"] != nil {
				test.args["session_id"] = apart
			}
			f := c.call("read", test.args).ok(t)
			equal(t, "output", f.Output, test.out)
			equal(t, "lines", []int{f.Start, f.Last, f.LinesTotal}, []int{test.start, test.last, test.total})
		})
	}
	f := c.call("read", members{"session_id": run, "search": "out", "max_matches": 3}).ok(t)
	if len(f.Matches) != 3 || f.Total != 100 {
		t.Errorf("%d matches of %d", len(f.Matches), f.Total)
	}
	// Pages are the whole output, in order.
	var all string
	args := members{"session_id": run, "start_line": 1, "max_output_tokens": 40}
	for range 100 {
		f := c.call("read", args).ok(t)
		again := c.call("read", args).ok(t)
		if all += f.Output; again.Output != f.Output {
			t.Errorf("%q, then %q", f.Output, again.Output)
		}
		if args = (members{"session_id": run, "cursor": f.Cursor, "max_output_tokens": 40}); !f.Truncated {
			break
		}
	}
	var want strings.Builder
	for i := range 100 {
		fmt.Fprintf(&want, "out %d\nerr %d\n", i+1, i+1)
	}
	equal(t, "pages", all, want.String())
}

// TestTools: what clients see of the tools, and that it is small.
func TestTools(t *testing.T) {
	c := open(t, nil)
	list, err := c.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	type hints struct{ Reads, Destroys, Idempotent, Open bool }
	got := map[string]hints{}
	for _, tool := range list.Tools {
		a := tool.Annotations
		got[tool.Name] = hints{a.ReadOnlyHint, *a.DestructiveHint, a.IdempotentHint, *a.OpenWorldHint}
		if tool.OutputSchema == nil || tool.Description == "" {
			t.Errorf("%s has no output schema or no description", tool.Name)
		}
		tool.OutputSchema = nil
	}
	run, look := hints{false, true, false, true}, hints{true, false, true, false}
	equal(t, "annotations", got, map[string]hints{"exec": run, "write": run, "signal": run, "patch": {false,
		true, false, false},
		"wait": look, "read": look, "screen": look, "list": look, "check": look})
	data, err := json.Marshal(list)
	if err != nil || len(data) > 16_000 {
		t.Errorf("tools/list has %d bytes, %v", len(data), err)
	}
	if n := len(c.InitializeResult().Instructions); n > 2000 || n == 0 {
		t.Errorf("instructions have %d bytes", n)
	}
	t.Logf("tools/list has %d bytes", len(data))
}

// TestSchemas: every answer that is no error validates.
func TestSchemas(t *testing.T) {
	c := open(t, nil)
	list, err := c.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*jsonschema.Resolved{}
	for _, tool := range list.Tools {
		schemas[tool.Name] = resolved(t, tool)
	}
	session := c.call("exec", members{"cmd": "echo up; read x", "tty": true,
		"wait_for": []string{"match=up"}}).ok(t).SessionID
	for i, one := range []struct {
		tool string
		args members
	}{
		{"exec", members{"cmd": "echo x; exit 1"}}, {"exec", members{"cmd": "sleep 60", "timeout_ms": 50}},
		{"exec", members{"cmd": "true", "sandbox_permissions": "require_escalated"}},
		{"exec", members{"cmd": "sleep 1", "yield_time_ms": 250}}, {"wait", members{"session_id": session,
			"timeout_ms": 10}},
		{"write", members{"session_id": session, "chars": ""}}, {"read", members{"session_id": session}},
		{"read", members{"session_id": session, "search": "u"}}, {"screen", members{"session_id": session}},
		{"list", members{"all": true}}, {"check", members{"cmd": "ls"}},
		{"patch", members{"patch": "*** Begin Patch\n*** Add File: x\n+y\n*** End Patch"}},
		{"signal", members{"session_id": session}},
	} {
		res, err := c.CallTool(context.Background(), &sdk.CallToolParams{Name: one.tool, Arguments: one.args})
		if err != nil || res.IsError {
			t.Errorf("%d: %v, %+v", i, err, res)
			continue
		}
		if err := schemas[one.tool].Validate(res.StructuredContent); err != nil {
			t.Errorf("%s %v: %v", one.tool, one.args, err)
		}
	}
}
