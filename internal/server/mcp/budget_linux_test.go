// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/google/jsonschema-go/jsonschema"
)

// A huge makes arguments that are far too much for an answer.
type huge struct {
	*rand.Rand
	session string
}

// text returns some thousand characters, of which JSON writes some in six bytes.
func (h huge) text(most int) string {
	words := []string{"x", "a b", `"\"`, "<&>", "€", "é", "\t", "'", "--a=b", "/", "..", "none-%d "}
	var b strings.Builder
	for n := 1 + h.IntN(most); b.Len() < n; {
		b.WriteString(strings.Repeat(words[h.IntN(len(words))], 1+h.IntN(64)))
	}
	return b.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// script returns one with a command for each of many lines, or one with many words.
func (h huge) script() string {
	var b strings.Builder
	for range 1 + h.IntN(400) {
		fmt.Fprintf(&b, "echo %s\n", quote(h.text(1000)))
	}
	if h.IntN(2) == 0 {
		return strings.ReplaceAll(b.String(), "\necho", "")
	}
	return b.String()
}

// patch returns one that adds files, with long names.
func (h huge) patch() string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	long := 1 + h.IntN(200)
	for i := range 1 + h.IntN(600) {
		fmt.Fprintf(&b, "*** Add File: %d/%s%d\n+x\n", h.Int(), strings.Repeat("€", long/3), i)
	}
	return b.String() + "*** End Patch\n"
}

// arguments returns those of a call of a tool.
func (h huge) arguments(tool string) members {
	m := members{"session_id": h.session}
	switch tool {
	case "exec", "check":
		m = members{"cmd": h.script()}
		switch h.IntN(4) {
		case 0:
			m["sandbox_permissions"] = "require_escalated"
			if tool == "exec" {
				m["justification"] = h.text(1000)
			}
		case 1:
			if tool == "exec" {
				m["cmd"] = fmt.Sprintf("i=0; while [ $i -lt 99 ]; do : > /etc/%s-$i; i=$((i+1)); done",
					strings.Repeat("y", h.IntN(200)))
			}
		}
	case "patch":
		m = members{"patch": h.patch()}
	case "list":
		m = members{"all": true}
	case "write":
		m["chars"] = h.text(100_000)
		m["yield_time_ms"] = 250
	case "wait":
		m["timeout_ms"] = 1
	case "read":
		if m["search"] = []string{"", "x", "."}[h.IntN(3)]; h.IntN(2) == 0 {
			m["start_line"] = 1
		}
	case "signal":
		m["signal"] = "CONT"
	}
	if h.IntN(2) == 0 {
		m["max_output_tokens"] = []int{0, 1, 100, 2000, 3000}[h.IntN(5)]
	}
	return m
}

// TestBudgetOfAll: no answer of any tool has more than its budget, in text or in JSON, whatever the arguments
// are, and each that is no error validates and counts what it leaves out.
func TestBudgetOfAll(t *testing.T) {
	c := open(t, nil)
	list, err := c.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 6
	for seed := range uint64(rounds) {
		h := huge{Rand: rand.New(rand.NewPCG(seed, 33))}
		h.session = c.call("exec", members{"cmd": "stty -echo; echo up; cat", "tty": true,
			"wait_for": []string{"match=up"}}).ok(t).SessionID
		for _, tool := range list.Tools {
			args := h.arguments(tool.Name)
			res, err := c.CallTool(context.Background(), &sdk.CallToolParams{Name: tool.Name,
				Arguments: args})
			if err != nil {
				t.Errorf("%d, %s: %v", seed, tool.Name, err)
				continue
			}
			tokens, ok := args["max_output_tokens"].(int)
			if !ok {
				tokens = 3000
			}
			f := factsOf(t, res)
			if most := min(4*tokens+4096, 16_000); len(f.text) > most || f.size > most {
				t.Errorf("%d, %s with %d tokens: %d bytes of text, %d of JSON", seed, tool.Name, tokens,
					len(f.text), f.size)
			}
			if res.IsError {
				continue
			}
			if err := resolved(t, tool).Validate(res.StructuredContent); err != nil {
				t.Errorf("%d, %s: %v", seed, tool.Name, err)
			}
		}
		c.call("signal", members{"session_id": h.session, "signal": "KILL"}).ok(t)
	}
}

// TestLeftOut: what is shortened is counted.
func TestLeftOut(t *testing.T) {
	c := open(t, nil)
	var patch strings.Builder
	const many = 400
	for i := range many {
		fmt.Fprintf(&patch, "*** Add File: %d-%s\n+x\n", i, strings.Repeat("x", 100))
	}
	for name, one := range map[string]struct {
		tool string
		args members
		want func(m map[string]any) bool
	}{
		"a long word": {"check", members{"cmd": "echo " + strings.Repeat("x", 200_000)},
			func(m map[string]any) bool {
				commands, _ := m["commands"].([]any)
				command, _ := commands[0].(map[string]any)
				argv, _ := command["argv"].([]any)
				return m["decision"] == "allow" && m["sandbox"] != nil && len(argv) > 1 &&
					strings.HasSuffix(fmt.Sprint(argv[len(argv)-1]), " bytes left out]")
			}},
		"many words": {"check", members{"cmd": "echo" + strings.Repeat(" x", 10_000)},
			func(m map[string]any) bool {
				commands, _ := m["commands"].([]any)
				command, _ := commands[0].(map[string]any)
				argv, _ := command["argv"].([]any)
				return len(argv) > 100 && command["argv_omitted"] == float64(10_001-len(argv))
			}},
		"many files": {"patch", members{"patch": "*** Begin Patch\n" + patch.String() + "*** End Patch\n"},
			func(m map[string]any) bool {
				files, _ := m["files"].([]any)
				return m["applied"] == true && len(files) > 20 &&
					m["files_omitted"] == float64(many-len(files))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := c.CallTool(context.Background(), &sdk.CallToolParams{Name: one.tool,
				Arguments: one.args})
			if err != nil || res.IsError {
				t.Fatalf("%v, %+v", err, res)
			}
			if m, ok := res.StructuredContent.(map[string]any); !ok || !one.want(m) {
				t.Errorf("%.2000v", res.StructuredContent)
			}
		})
	}
}

// resolved returns the schema of a tool's answers.
func resolved(t *testing.T, tool *sdk.Tool) *jsonschema.Resolved {
	t.Helper()
	data, _ := json.Marshal(tool.OutputSchema) // it was decoded from JSON
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
