// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/internal/server/mcp"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestCanceled: a canceled exec ends its processes, and a canceled wait ends nothing but itself.
func TestCanceled(t *testing.T) {
	c := open(t, nil)
	id := c.call("exec", members{"cmd": "echo up; read x", "keep_stdin": true,
		"wait_for": []string{"match=up"}}).ok(t).SessionID
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "wait",
		Arguments: members{"session_id": id}}); err == nil {
		t.Error("the wait was answered")
	}
	c.call("write", members{"session_id": id, "chars": "\n", "wait_for": []string{"exit"},
		"yield_time_ms": 30_000}).exits(t, 0)

	pipe := filepath.Join(c.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	answered := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "exec",
			Arguments: members{"cmd": "exec sleep 600 > pipe", "timeout_ms": 600_000}})
		answered <- err
	}()
	f, err := os.Open(pipe) // when the command has opened it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stop()
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // when it has ended
		t.Error(err)
	}
	if err := <-answered; err == nil {
		t.Error("the exec was answered")
	}
}

// TestConcurrent: a call that waits blocks no other one.
func TestConcurrent(t *testing.T) {
	c := open(t, nil)
	id := c.call("exec", members{"cmd": "read x; echo got $x", "keep_stdin": true,
		"yield_time_ms": 250}).ok(t).SessionID
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() { c.call("wait", members{"session_id": id, "timeout_ms": 60_000}).exits(t, 0) })
	}
	c.call("exec", members{"cmd": "true"}).exits(t, 0)
	c.call("write", members{"session_id": id, "chars": "x\n"}).ok(t)
	calls.Wait()
}

// TestProgress: a client that asks for it hears of a call within 2 s, with numbers that rise.
func TestProgress(t *testing.T) {
	testenv.Long(t) // it takes 6 s
	var mu sync.Mutex
	var seen []float64
	var said []string
	began := time.Now()
	c := open(t, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context,
		r *sdk.ProgressNotificationClientRequest) {
		mu.Lock()
		defer mu.Unlock()
		if len(seen) == 0 && time.Since(began) > 2*time.Second {
			t.Errorf("the first progress came after %v", time.Since(began))
		}
		seen, said = append(seen, r.Params.Progress), append(said, r.Params.Message)
	}})
	id := c.call("exec", members{"cmd": "echo step one; sleep 60",
		"wait_for": []string{"match=one"}}).ok(t).SessionID
	p := &sdk.CallToolParams{Name: "wait", Arguments: members{"session_id": id, "timeout_ms": 6000}}
	p.SetProgressToken("token")
	if _, err := c.CallTool(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) < 2 || seen[1] <= seen[0] || !strings.Contains(said[1], "step one") {
		t.Errorf("%v %q", seen, said)
	}
}

// TestOneWait: a command that takes long needs one wait.
func TestOneWait(t *testing.T) {
	c := open(t, nil)
	f := c.call("exec", members{"cmd": "read x; echo over", "keep_stdin": true, "yield_time_ms": 250}).ok(t)
	done := make(chan *facts, 1)
	go func() { done <- c.call("wait", members{"session_id": f.SessionID, "timeout_ms": 300_000}) }()
	c.call("write", members{"session_id": f.SessionID, "chars": "\n", "yield_time_ms": 1,
		"max_output_tokens": 0}).ok(t)
	if got := (<-done).exits(t, 0); got.Reason != "exit" {
		t.Errorf("%+v", got)
	}
}

// TestResources: the output of runs is listed, read, and unknown ones are an error of the revision.
func TestResources(t *testing.T) {
	for revision, code := range map[string]int64{"2025-06-18": -32002, "": -32602} {
		c := openAt(t, revision, nil)
		run := c.call("exec", members{"cmd": "printf '\\033[1mbold\\n'"}).exits(t, 0).Run
		uri := "sallyport://runs/" + run + "/output"
		list, err := c.ListResources(context.Background(), nil)
		if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != uri {
			t.Errorf("%+v, %v", list, err)
		}
		res, err := c.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || res.Contents[0].Text != "\x1b[1mbold\n" || res.Contents[0].MIMEType != "text/plain" {
			t.Errorf("%+v, %v", res, err)
		}
		templates, err := c.ListResourceTemplates(context.Background(), nil)
		if err != nil || len(templates.ResourceTemplates) != 1 {
			t.Errorf("%+v, %v", templates, err)
		}
		for _, bad := range []string{"sallyport://runs/999999/output", "sallyport://other",
			"file:///etc/passwd"} {
			_, err = c.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: bad})
			var wire *jsonrpc.Error
			if !errors.As(err, &wire) || wire.Code != code {
				t.Errorf("%s at %q: %v", bad, revision, err)
			}
		}
	}
}

// A lineClient speaks in lines.
type lineClient struct {
	t    testing.TB
	in   *io.PipeWriter
	out  *bufio.Scanner
	done chan error
}

// speak begins to serve lines.
func speak(t testing.TB) (*lineClient, string) {
	t.Helper()
	testenv.NeedUserNS(t)
	dir := t.TempDir()
	server := mcp.New(options(t, dir))
	in, write := io.Pipe()
	read, out := io.Pipe()
	c := &lineClient{t, write, bufio.NewScanner(read), make(chan error, 1)}
	c.out.Buffer(nil, 1<<20)
	go func() {
		c.done <- server.ServeLines(context.Background(), in, out)
		_ = out.Close()
	}()
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26",` +
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	contains(t, c.next(), `"protocolVersion":"2025-03-26"`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c, dir
}

func (c *lineClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *lineClient) next() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the output ended: %v", c.out.Err())
	}
	return c.out.Text()
}

// exec sends a call.
func (c *lineClient) exec(id int, args members) {
	c.t.Helper()
	data, _ := json.Marshal(members{"jsonrpc": "2.0", "id": id, "method": "tools/call",
		"params": members{"name": "exec", "arguments": args}})
	c.send(string(data))
}

// TestNoAnswerAfterCancel: a canceled request gets no answer on a connection in lines.
func TestNoAnswerAfterCancel(t *testing.T) {
	c, dir := speak(t)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c.exec(1, members{"cmd": "exec sleep 600 > pipe"})
	f, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`) //nolint:misspell // its name
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	c.exec(2, members{"cmd": "echo second"})
	contains(t, c.next(), `"id":2`, "second")
	_ = c.in.Close()
	if err := <-c.done; err != nil {
		t.Error(err)
	}
}

// TestEndOfInput: the end of the connection ends all sessions, also in the middle of a wait, and what was
// asked before is answered.
func TestEndOfInput(t *testing.T) {
	c, dir := speak(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.exec(1, members{"cmd": "trap 'echo ending; exit 3' TERM; (sleep 600 & wait) > pipe & wait"})
	f, err := os.Open(filepath.Join(dir, "pipe"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	began := time.Now()
	_ = c.in.Close()
	contains(t, c.next(), `"id":1`, `"end":"canceled"`)
	if err := <-c.done; err != nil {
		t.Error(err)
	}
	if _, err := f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// TestHugeLine: a line that is too long is answered with an error, no memory is taken for it, and the next
// one is read.
func TestHugeLine(t *testing.T) {
	c, _ := speak(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	part, lines := bytes.Repeat([]byte("x"), 1<<20), make(chan error, 1)
	go func() {
		for range 256 {
			if _, err := c.in.Write(part); err != nil {
				lines <- err
				return
			}
		}
		_, err := io.WriteString(c.in, "\n"+`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
		lines <- err
	}()
	contains(t, c.next(), `"code":-32600`, `"id":null`, "8388608 bytes")
	contains(t, c.next(), `"id":1`, `"result"`)
	if err := <-lines; err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
		t.Errorf("it took %d bytes of memory", took)
	}
	_ = c.in.Close()
	if err := <-c.done; err != nil {
		t.Error(err)
	}
}
