// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A codexHome is the real Codex client with a scripted model.
type codexHome struct {
	seat
	codex string
	model *testenv.Model
}

// newCodex makes the settings of Codex for a model with a script.
func newCodex(t *testing.T, script []modelStep) codexHome {
	t.Helper()
	codex := testenv.NeedPeer(t, "codex")
	testenv.NeedUserNS(t)
	s := newSeat(t)
	node, err := filepath.EvalSymlinks(testenv.NeedPeer(t, "node")) // codex is a script of it
	if err != nil {
		t.Fatal(err)
	}
	s.path += ":" + filepath.Dir(node)
	c := codexHome{s, codex, &testenv.Model{Script: script}}
	api := httptest.NewServer(c.model)
	t.Cleanup(api.Close)
	c.settings(t, fmt.Sprintf("model = \"scripted\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\n"+
		"name = \"scripted\"\nbase_url = %q\nwire_api = \"responses\"\n", api.URL+"/v1"))
	return c
}

// settings adds text to the settings.
func (c codexHome) settings(t *testing.T, text string) {
	t.Helper()
	dir := filepath.Join(c.home, ".codex")
	f, err := os.OpenFile(filepath.Join(dir, "config.toml"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		if err = os.Mkdir(dir, 0o700); err == nil {
			f, err = os.Create(filepath.Join(dir, "config.toml"))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// answers has the model make its calls, and returns what they returned.
func (c codexHome) answers(t *testing.T, mode string) []string {
	t.Helper()
	cmd := c.command(t, c.codex, "exec", "--skip-git-repo-check", "-s", mode, "go on")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	said := c.model.Said()
	if len(said) != len(c.model.Script) {
		t.Fatalf("%d answers: %q", len(said), said)
	}
	return said
}

// A modelStep is a call of the model, by the outputs of those before.
type modelStep = func(outputs []string) (tool string, arguments map[string]any)

// codexCall is a call of a tool without regard to what was before.
func codexCall(tool string, arguments map[string]any) modelStep {
	return func([]string) (string, map[string]any) { return tool, arguments }
}

// TestPeerCodexMCP: the real Codex client, set up by mcp install, runs commands by the tools of the server.
func TestPeerCodexMCP(t *testing.T) {
	session := func(tool string, more map[string]any) modelStep {
		return func(outputs []string) (string, map[string]any) {
			found := regexp.MustCompile(`session_id\\+":\\+"(\d+)`).FindStringSubmatch(strings.Join(outputs, ""))
			if found == nil {
				t.Errorf("no session in %q", outputs)
				found = make([]string, 2)
			}
			more["session_id"] = found[1]
			return tool, more
		}
	}
	script := []modelStep{
		codexCall("mcp__sallyport.exec", map[string]any{"cmd": "echo hello; echo x >../out || echo denied; exit 7"}),
		codexCall("mcp__sallyport.exec", map[string]any{"cmd": "pwd; read x; echo got $x; read x; exit 3",
			"keep_stdin": true, "wait_for": []string{"match=/w\n"}}),
		session("mcp__sallyport.write", map[string]any{"chars": "ping\n", "wait_for": []string{"match=got ping"}}),
		session("mcp__sallyport.write", map[string]any{"chars": "", "close_stdin": true}),
		session("mcp__sallyport.wait", map[string]any{"timeout_ms": 60_000}),
		codexCall("mcp__sallyport.exec", map[string]any{"cmd": "echo out", "sandbox_permissions": "require_escalated",
			"justification": "it must"}), // the user is absent: the client declines
		codexCall("mcp__sallyport.exec", map[string]any{"cmmd": "true"}),
	}
	c := newCodex(t, script)
	if out, err := c.command(t, "sallyport", "mcp", "install", "codex").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Without it, codex exec refuses tools that may destroy.
	c.settings(t, "default_tools_approval_mode = \"approve\"\n")
	said := c.answers(t, "workspace-write")
	for i, wants := range [][]string{
		{`"exit_code":7`, `hello\n`, `denied\n`, `"state":"ended"`},
		{c.work, `"state":"running"`, `"reason":"match"`, `"exit_code":null`},
		{`got ping\n`, `"reason":"match"`},
		{`"run":`},
		{`"exit_code":3`, `"state":"ended"`},
		{`"exit_code":123`, `"end":"refused"`},
		{`cmmd`, `cmd`},
	} {
		for _, want := range wants {
			if text := strings.NewReplacer(`\"`, `"`, `\\n`, `\n`).Replace(said[i]); !strings.Contains(text, want) {
				t.Errorf("call %d: no %s in %s", i, want, text)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(c.work, "../out")); err == nil {
		t.Error("the sandbox was left")
	}
}

// TestPeerCodexHook: a command of the real Codex client's own tool runs in our sandbox after hook install and
// after the hook is trusted, and not before.
func TestPeerCodexHook(t *testing.T) {
	script := []modelStep{
		codexCall("exec_command", map[string]any{"cmd": `echo "it's [$SALLYPORT]"; echo x >../out || echo denied`}),
		codexCall("exec_command", map[string]any{"cmd": "git push"}),
	}
	c := newCodex(t, script)
	if out, err := c.command(t, "sallyport", "hook", "install", "codex", "--", "--deny-host", "x.example").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rules := filepath.Join(c.home, ".config/sallyport/rules")
	// The test binary is called by its bare name, and /etc/profile sets PATH anew.
	if err := errors.Join(os.MkdirAll(rules, 0o700), os.WriteFile(filepath.Join(rules, "a.rules"),
		[]byte(`prefix_rule(pattern=["git", "push"], decision="forbidden", justification="no pushes")`), 0o600),
		os.WriteFile(filepath.Join(c.home, ".profile"), []byte("PATH='"+c.path+"'\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	said := c.answers(t, "danger-full-access")
	if !strings.Contains(said[0], "it's []") {
		t.Errorf("before it is trusted: %s", said)
	}
	if err := os.Remove(filepath.Join(c.work, "../out")); err != nil {
		t.Error(err)
	}
	key, hash := c.hook(t)
	c.settings(t, fmt.Sprintf("[hooks.state.%q]\ntrusted_hash = %q\n", key, hash))
	said = c.answers(t, "danger-full-access")
	if !strings.Contains(said[0], "it's [1]") || !strings.Contains(said[0], "denied") {
		t.Errorf("not contained: %s", said[0])
	}
	if !strings.Contains(said[1], "no pushes") {
		t.Errorf("not denied: %s", said[1])
	}
	if _, err := os.Stat(filepath.Join(c.work, "../out")); err == nil {
		t.Error("the sandbox was left")
	}
}

// hook returns the key and the hash of the only hook, by which /hooks trusts it.
func (c codexHome) hook(t *testing.T) (key, hash string) {
	t.Helper()
	cmd := c.command(t, c.codex, "app-server")
	in, err := cmd.StdinPipe()
	out, also := cmd.StdoutPipe()
	if err := errors.Join(err, also); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = cmd.Wait() // it ends with its input
	}()
	text, err := json.Marshal(map[string]any{"id": 1, "method": "hooks/list", "params": map[string]any{
		"cwds": []string{c.work}}})
	if err == nil {
		_, err = io.WriteString(in, `{"id":0,"method":"initialize","params":{"clientInfo":{"name":"x","title":"x",`+
			`"version":"1"}}}`+"\n"+`{"method":"initialized"}`+"\n"+string(text)+"\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var answer struct {
			ID     int
			Result struct {
				Data []struct {
					Hooks []struct{ Key, CurrentHash, TrustStatus string }
				}
			}
		}
		if json.Unmarshal(lines.Bytes(), &answer) != nil || answer.ID != 1 {
			continue
		}
		if d := answer.Result.Data; len(d) == 1 && len(d[0].Hooks) == 1 && d[0].Hooks[0].TrustStatus == "untrusted" {
			return d[0].Hooks[0].Key, d[0].Hooks[0].CurrentHash
		}
		break
	}
	t.Fatalf("no hook in %s, %v", lines.Text(), lines.Err())
	return "", ""
}
