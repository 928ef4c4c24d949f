// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// meet connects to a server and makes or resumes a session.
func meet(t testing.TB, server testServer, resume any) (*caller, string) {
	t.Helper()
	c := &caller{t: t, speaker: connect(t, server)}
	return c, c.greet(resume)
}

// started starts a process.
func (c *caller) started(params map[string]any) {
	c.t.Helper()
	if m := c.call("process/start", params); m.Error != nil {
		c.t.Fatalf("%+v", m.Error)
	}
}

// first waits for the first output of a process and returns all of it up to a newline.
func (c *caller) first(process string) string {
	c.t.Helper()
	text := ""
	for !strings.HasSuffix(text, "\n") {
		m := c.until(func(m *message) bool {
			return m.Method == "process/output" &&
				m.Params.ProcessID == process
		})
		text += string(m.Params.Chunk)
	}
	return strings.TrimSpace(text)
}

// alive reports whether a process of this machine runs.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatalf("no process: %q", pid)
	}
	return unix.Kill(n, 0) == nil
}

// TestReadDoesNotBlock: with a server that does one thing at a time, a read that waits is not in
// the way of other requests, nor is input to a process that does not read.
func TestReadDoesNotBlock(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	c.started(script("p", t.TempDir(), "sleep 60"))
	c.post(map[string]any{"id": "parked", "method": "process/read",
		"params": map[string]any{"processId": "p", "waitMs": 600_000}})
	chunk := base64.StdEncoding.EncodeToString(make([]byte, 512<<10))
	for i := range 4 { // more than a pipe holds
		c.post(map[string]any{"id": fmt.Sprint("w", i), "method": "process/write",
			"params": map[string]any{"processId": "p", "chunk": chunk, "writeId": fmt.Sprint(i)}})
	}
	if m := c.call("environment/status", nil); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
	if m := c.call("process/terminate",
		map[string]any{"processId": "p"}); string(m.Result) != `{"running":true}` {
		t.Errorf("%s", m.Result)
	}
	for !c.answered[`"parked"`] || !c.answered[`"w3"`] {
		c.more()
	}
}

// TestFullInput: input that no process reads takes a bounded amount of memory.
func TestFullInput(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	c.started(script("p", t.TempDir(), "sleep 60"))
	chunk := strings.Repeat("AAAA", 2<<20)
	for i := range 3 {
		c.sends(fmt.Sprintf(`{"id":%d,"method":"process/write","params":{"processId":"p","writeId":"%[1]d","chunk":"`, i+100) + chunk + `"}}`)
	}
	m := c.until(func(m *message) bool { return m.Error != nil })
	if m.Error.Code != -32603 || !strings.Contains(m.Error.Message, "input buffer full") {
		t.Errorf("%+v", m.Error)
	}
}

// TestOrder: the events of many processes that write to both streams come in the order of their
// numbers, and input in the order of its requests, also where several requests run at once.
func TestOrder(t *testing.T) {
	o := options()
	o.Starts = 8
	c, _ := meet(t, run(t, o), nil)
	dir := t.TempDir()
	const processes, lines = 12, 200
	// What comes is read meanwhile: a server that cannot send takes no more requests.
	var posting sync.WaitGroup
	posting.Go(func() {
		for i := range processes {
			id := fmt.Sprint("p", i)
			c.post(map[string]any{"id": id, "method": "process/start", "params": script(id, dir,
				fmt.Sprintf("for i in $(seq %d); do read x; echo $x; echo $i >&2; done; exit %d", lines, i))})
			for n := range lines {
				chunk := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%d\n", n))
				c.post(map[string]any{"id": 0, "method": "process/write",
					"params": map[string]any{"processId": id, "chunk": chunk, "writeId": fmt.Sprint(n)}})
			}
		}
	})
	defer posting.Wait()
	closed := 0
	c.until(func(m *message) bool {
		if m.Error != nil {
			t.Fatalf("%+v", m.Error)
		}
		if m.Method == "process/closed" {
			closed++
		}
		return closed == processes
	})
	var want [2]string
	for n := range lines {
		want[0] += fmt.Sprintln(n)
		want[1] += fmt.Sprintln(n + 1)
	}
	next, got := map[string]uint64{}, map[string]string{}
	for _, m := range c.events {
		p := m.Params
		if next[p.ProcessID]++; next[p.ProcessID] != p.Seq {
			t.Fatalf("%s of %s has the number %d, want %d", m.Method, p.ProcessID, p.Seq, next[p.ProcessID])
		}
		got[p.ProcessID+p.Stream] += string(p.Chunk)
		if m.Method == "process/exited" && fmt.Sprint("p", p.ExitCode) != p.ProcessID {
			t.Errorf("exit code %d of %s", p.ExitCode, p.ProcessID)
		}
	}
	for i := range processes {
		if id := fmt.Sprint("p", i); got[id+"stdout"] != want[0] || got[id+"stderr"] != want[1] {
			t.Errorf("output of %s: %q, %q", id, got[id+"stdout"], got[id+"stderr"])
		}
	}
}

// resumed resumes a session, once the server has seen the end of its connection.
func resumed(t *testing.T, server testServer, id string) *caller {
	t.Helper()
	c := &caller{t: t, speaker: connect(t, server)}
	for {
		m := c.call("initialize", map[string]any{"clientName": "test", "resumeSessionId": id,
			"extensionMethods": true})
		if m.Error == nil {
			return c
		}
		if m.Error.Code != -32010 {
			t.Fatalf("%+v", m.Error)
		}
	}
}

// TestTakeOver: a client whose connection was cut without a word resumes its session at once, also
// while the server still believes in the connection before, and that one ends.
func TestTakeOver(t *testing.T) {
	server := run(t, options())
	c, id := meet(t, server, nil)
	c.started(script("p", t.TempDir(), "read x; echo got $x"))
	d := &caller{t: t, speaker: connect(t, server)}
	hello := map[string]any{"clientName": "test", "resumeSessionId": id}
	if m := d.call("initialize", hello); m.Error == nil || m.Error.Code != -32010 {
		t.Fatalf("without taking it over: %s, %+v", m.Result, m.Error)
	}
	hello["takeOver"] = true
	if m := d.call("initialize", hello); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	if text, err := c.receive(); err == nil {
		t.Errorf("the connection before still gets %s", text)
	}
	d.post(map[string]any{"method": "initialized"})
	d.call("process/write", map[string]any{"processId": "p",
		"chunk": base64.StdEncoding.EncodeToString([]byte("it\n")), "writeId": "1"})
	if got := d.first("p"); got != "got it" {
		t.Errorf("%q", got)
	}
}

// TestDetachedEnds: a session without a connection ends after its time, with its processes.
func TestDetachedEnds(t *testing.T) {
	o := options()
	o.Detached = time.Millisecond
	server := run(t, o)
	c, id := meet(t, server, nil)
	fifo := filepath.Join(t.TempDir(), "alive")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	c.started(script("p", filepath.Dir(fifo), "exec 3>alive; sleep 60"))
	f, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(f); err != nil { // it ends with the processes that hold the pipe
		t.Fatal(err)
	}
	m := (&caller{t: t, speaker: connect(t, server)}).call("initialize",
		map[string]any{"clientName": "x", "resumeSessionId": id})
	if m.Error == nil || m.Error.Code != -32600 || m.Error.Message != "unknown session id "+id {
		t.Errorf("%+v", m.Error)
	}
}

// TestBadMessages: what no client of the protocol sends is refused, or ends its connection, and
// the server goes on.
func TestBadMessages(t *testing.T) {
	server := run(t, options())
	values := `{"id":1,"method":"environment/status","params":[` + strings.Repeat("1,", 300_000) + `1]}`
	for _, test := range []struct {
		name, text string
		answered   bool // with an error of the ID -1; else the connection ends
	}{
		{"300 000 values", values, true},
		{"nested deeply", `{"id":1,"method":"x","params":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + `}`, true},
		{"member twice", `{"id":1,"method":"initialize","params":{"clientName":"a","clientName":"b"}}`, true},
		{"member twice, escaped", `{"id":1,"method":"initialize","params":{"clientName":"a","client\u004eame":"b"}}`, true},
		{"no UTF-8", "{\"id\":1,\"method\":\"environment/status\xff\"}", true},
		{"large ID", `{"id":9223372036854775808,"method":"x"}`, true},
		{"answer that was not asked for", `{"id":1,"result":{}}`, false},
		{"error that was not asked for", `{"id":1,"error":{"code":1,"message":""}}`, false},
		{"initialized first", `{"method":"initialized"}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := connect(t, server)
			if err := w.send([]byte(test.text)); err != nil && test.answered {
				t.Fatal(err)
			}
			text, err := w.receive()
			if test.answered {
				if err != nil || !bytes.Contains(text, []byte(`"code":-32600`)) ||
					!bytes.Contains(text, []byte(`"id":-1`)) {
					t.Errorf("%s, %v", text, err)
				}
				return
			}
			if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
	c, _ := meet(t, server, nil)
	if m := c.call("environment/status", nil); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
}

// TestCredential: a session is resumed with the credential that made it, and with no other:
// knowing its ID is not enough. The wall is the comparison in resume.
func TestCredential(t *testing.T) {
	server := run(t, options())
	alice, id := meet(t, server.as("alice"), nil)
	alice.started(script("p", t.TempDir(), "sleep 60"))

	mallory := &caller{t: t, speaker: connect(t, server.as("mallory"))}
	for _, takeOver := range []bool{false, true} {
		m := mallory.call("initialize", map[string]any{"clientName": "x", "resumeSessionId": id,
			"takeOver": takeOver})
		if m.Error == nil || m.Error.Message != "unknown session id "+id {
			t.Errorf("%+v", m)
		}
	}
	if err := alice.close(); err != nil {
		t.Fatal(err)
	}
	if m := mallory.call("initialize", map[string]any{"clientName": "x",
		"resumeSessionId": id}); m.Error == nil {
		t.Errorf("%s", m.Result)
	}
	resumed(t, server.as("alice"), id) // with a new token of the same client
}

// TestUnsupported: what this version does not support is refused by name, because without it a
// process could reach more than its client thinks.
func TestUnsupported(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	permissions := json.RawMessage(`{"type":"disabled"}`)
	for _, test := range []struct {
		name   string
		member string
		value  any
	}{
		{"networkProxy", "networkProxy", map[string]any{"proxy": map[string]any{"enabled": true}}},
		{"managedNetwork", "managedNetwork", map[string]any{"allowLocalBinding": true}},
		{"enforceManagedNetwork", "enforceManagedNetwork", true},
		{"shellSnapshot", "shellSnapshot", map[string]any{"scopeId": "x"}},
		{"credentialProviders", "credentialProviders", []string{"x"}},
		{"useLegacyLandlock", "sandbox", map[string]any{"permissions": permissions, "windowsSandboxLevel": "disabled", "useLegacyLandlock": true}},
		{"sandboxOverride", "sandbox", map[string]any{"permissions": permissions, "windowsSandboxLevel": "disabled", "sandboxOverride": "bypassSandboxFirstAttempt"}},
		{"temporaryDirectories", "sandbox", map[string]any{"permissions": permissions, "windowsSandboxLevel": "disabled", "temporaryDirectories": []string{"file:///a", "file:///b"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			params := script("p", "/", "echo ran")
			params[test.member] = test.value
			m := c.call("process/start", params)
			if m.Error == nil || m.Error.Code != -32602 || !strings.Contains(m.Error.Message, test.name) {
				t.Errorf("%+v", m)
			}
		})
	}
}
