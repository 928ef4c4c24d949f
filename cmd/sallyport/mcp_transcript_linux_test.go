// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// transcript is what the TypeScript SDK and the server said, a message a line. SALLYPORT_TEST_UPDATE has
// TestMCPTranscript write it anew with what the server says now, and TestPeerMCPClient with both sides.
const transcript = "testdata/mcp/typescript.jsonl"

// A spoken is a line of a transcript.
type spoken struct {
	Client json.RawMessage `json:"client,omitempty"`
	Server json.RawMessage `json:"server,omitempty"`
}

// volatile are members that differ from run to run, or by machine.
var volatile = []string{"duration_ms", "wait_ms", "idle_ms", "policy_version", "started", "version",
	"instructions"}

// machine are members that are there, or not, by what the machine has.
var machine = []string{"sandbox", "survivors_by"}

// volatileText are names of questions, and the path of the shell.
var volatileText = regexp.MustCompile(`[0-9a-f]{32}-|\nProgram: .*`)

// steady returns a message without what differs each time.
func (s seat) steady(t *testing.T, message []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(message, &v); err != nil {
		t.Fatalf("%v: %s", err, message)
	}
	var walk func(name string, v any) any
	walk = func(name string, v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, of := range v {
				v[k] = walk(k, of)
				switch {
				case slices.Contains(volatile, k):
					v[k] = "*"
				case slices.Contains(machine, k):
					delete(v, k)
				}
			}
		case []any:
			for i, of := range v {
				tool, ok := of.(map[string]any)
				if ok && name == "tools" {
					of = tool["name"]
				}
				v[i] = walk("", of)
			}
		case string:
			return volatileText.ReplaceAllString(strings.ReplaceAll(v, s.work, "WORK"), "*")
		}
		return v
	}
	text, err := json.Marshal(walk("", v))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// steadyLines is steady for the lines of a transcript.
func (s seat) steadyLines(t *testing.T, lines []byte) (all []spoken) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		var m spoken
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if m.Server != nil {
			m.Server = s.steady(t, m.Server)
		}
		all = append(all, m)
	}
	return all
}

// compareTranscript fails t unless a transcript is the recorded one, or records it.
func compareTranscript(t *testing.T, got []spoken) {
	t.Helper()
	var now bytes.Buffer
	encoder := json.NewEncoder(&now)
	encoder.SetEscapeHTML(false)
	for _, m := range got {
		if err := encoder.Encode(m); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("SALLYPORT_TEST_UPDATE") != "" {
		if err := os.WriteFile(transcript, now.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(now.String(), "\n")); diff != "" {
		t.Errorf("the transcript differs (-recorded +now):\n%s", diff)
	}
}

// TestPeerMCPClient has the TypeScript SDK of the protocol drive sessions and answer questions, and records
// it.
func TestPeerMCPClient(t *testing.T) {
	node, modules := testenv.NeedPeer(t, "node"), testenv.NeedNodeModule(t, "@modelcontextprotocol/sdk")
	testenv.NeedUserNS(t)
	s := newSeat(t)
	cmd := s.command(t, node, workingFile(t, "testdata/mcp/client.mjs"), modules, s.program("sallyport"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	compareTranscript(t, s.steadyLines(t, out))
}

// workingFile returns the absolute path of a file of this package.
func workingFile(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir + "/" + name
}

// TestMCPTranscript says to the server what the TypeScript SDK said, and gets the same answers.
func TestMCPTranscript(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	recorded, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	s := newSeat(t)
	c := s.mcpServer(t)
	var now bytes.Buffer
	for line := range bytes.Lines(recorded) {
		var m spoken
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if m.Client != nil {
			c.send(string(m.Client))
			now.Write(line)
			continue
		}
		if !c.out.Scan() {
			t.Fatalf("the server ends before %s: %v", line, c.out.Err())
		}
		fmt.Fprintf(&now, "{\"server\":%s}\n", c.out.Bytes())
	}
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	compareTranscript(t, s.steadyLines(t, now.Bytes()))
}
