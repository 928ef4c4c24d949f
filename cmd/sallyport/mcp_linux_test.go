// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// An mcpClient speaks with sallyport mcp in lines.
type mcpClient struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// mcpAnswer is what the tests read of an answer.
type mcpAnswer struct {
	Result struct {
		IsError           bool
		StructuredContent struct {
			State, Run, Output, End string
			SessionID               string `json:"session_id"`
			ExitCode                *int   `json:"exit_code"`
			Approval                struct{ ID string }
		}
	}
}

// mcpServer starts the server with flags.
func (s seat) mcpServer(t *testing.T, flags ...string) *mcpClient {
	t.Helper()
	testenv.NeedUserNS(t)
	c := &mcpClient{t: t, cmd: s.command(t, append([]string{"sallyport", "mcp"}, flags...)...)}
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewScanner(out)
	c.out.Buffer(nil, 1<<20)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

// mcp starts the server with flags, for a client without elicitation.
func (s seat) mcp(t *testing.T, flags ...string) *mcpClient {
	t.Helper()
	c := s.mcpServer(t, flags...)
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if !c.out.Scan() {
		t.Fatal(c.out.Err())
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *mcpClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// call calls a tool.
func (c *mcpClient) call(tool string, args map[string]any) mcpAnswer {
	c.t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": args}})
	if err != nil {
		c.t.Fatal(err)
	}
	if c.send(string(text)); !c.out.Scan() {
		c.t.Fatal(c.out.Err())
	}
	var a mcpAnswer
	if err := json.Unmarshal(c.out.Bytes(), &a); err != nil {
		c.t.Fatalf("%v: %s", err, c.out.Text())
	}
	if a.Result.IsError {
		c.t.Fatalf("%s", c.out.Text())
	}
	return a
}

// end ends the input, and returns the exit code.
func (c *mcpClient) end() int {
	c.t.Helper()
	_ = c.in.Close()
	for c.out.Scan() {
	}
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}

// TestMCP: a session, an approval from another terminal, and the end of the input.
func TestMCP(t *testing.T) {
	s := newSeat(t)
	c := s.mcp(t)
	a := c.call("exec", map[string]any{"cmd": "pwd; read x; echo got $x", "keep_stdin": true,
		"wait_for": []string{"quiet=50ms"}}).Result.StructuredContent
	if a.State != "running" || a.Output != s.work+"\n" {
		t.Fatalf("%+v", a)
	}
	id := a.SessionID
	a = c.call("write", map[string]any{"session_id": id, "chars": "y\n", "wait_for": []string{"exit"},
		"yield_time_ms": 60_000}).Result.StructuredContent
	if a.State != "ended" || a.Output != "got y\n" {
		t.Fatalf("%+v", a)
	}
	why := s.command(t, "sallyport", "why")
	if out, err := why.CombinedOutput(); err != nil || !strings.Contains(string(out), "got") {
		t.Errorf("why: %s, %v", out, err)
	}

	args := map[string]any{"cmd": "echo outside", "sandbox_permissions": "require_escalated",
		"justification": "x"}
	a = c.call("exec", args).Result.StructuredContent
	if a.State != "approval_needed" {
		t.Fatalf("%+v", a)
	}
	if out, err := s.command(t, "sallyport", "approve", a.Approval.ID).CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	args["approval_id"] = a.Approval.ID
	if a = c.call("exec", args).Result.StructuredContent; a.State != "ended" || a.Output != "outside\n" {
		t.Fatalf("%+v", a)
	}

	pipe := filepath.Join(s.work, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c.call("exec", map[string]any{"cmd": "exec sleep 600 > pipe", "yield_time_ms": 250})
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n, err := f.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("the session goes on")
	}
}

// TestMCPHTTP: the URL is the first line, the token is made, and no command reads it.
func TestMCPHTTP(t *testing.T) {
	testenv.NeedUserNS(t)
	s := newSeat(t)
	cmd := s.command(t, "sallyport", "mcp", "--http", "127.0.0.1:0", "--token-file", "token")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "http://127.0.0.1:") ||
		!strings.HasSuffix(lines.Text(), "/mcp") {
		t.Fatalf("%q", lines.Text())
	}
	token, err := os.ReadFile(filepath.Join(s.work, "token"))
	if err != nil {
		t.Fatal(err)
	}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
		`"params":{"name":"exec","arguments":{"cmd":"cat token"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequest(http.MethodPost, lines.Text(), strings.NewReader(call))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + strings.TrimSpace(string(token)),
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "exec"} {
		r.Header.Set(name, value)
	}
	r.Close = true
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(said), `"exit_code":1`) || strings.Contains(string(said),
		strings.TrimSpace(string(token))) {
		t.Errorf("%d %s, %v", res.StatusCode, said, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
