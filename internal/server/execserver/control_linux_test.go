// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// write writes to a process, and returns the status.
func (c *caller) write(process, id, text string) string {
	c.t.Helper()
	return c.status("process/write", map[string]any{"processId": process, "writeId": id, "chunk": base64.StdEncoding.EncodeToString([]byte(text))})
}

// status makes a request about input, and returns the status.
func (c *caller) status(method string, params map[string]any) string {
	c.t.Helper()
	var result struct{ Status string }
	if m := c.call(method, params); m.Error != nil || json.Unmarshal(m.Result, &result) != nil {
		c.t.Fatalf("%+v", m)
	}
	return result.Status
}

// exit waits for the end of a process, and returns its exit code and what it printed.
func (c *caller) exit(process string) (code int, text string) {
	c.t.Helper()
	c.ended(process)
	for _, m := range c.events {
		switch {
		case m.Params.ProcessID != process:
		case m.Method == "process/output":
			text += string(m.Params.Chunk)
		case m.Method == "process/exited":
			code = m.Params.ExitCode
		}
	}
	return code, text
}

// isTerminal returns parameters for a process with a terminal.
func isTerminal(id, dir, text string) map[string]any {
	params := script(id, dir, text)
	params["tty"] = true
	return params
}

// TestResize: a terminal gets its size, and its program is told.
func TestResize(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	dir := t.TempDir()
	c.started(isTerminal("p", dir, `trap 'stty size; exit 3' WINCH; echo ready; while :; do read x; done`))
	c.first("p")
	if m := c.call("process/resize", map[string]any{"processId": "p", "cols": 132, "rows": 43}); string(m.Result) != "{}" {
		t.Errorf("%+v", m)
	}
	if code, text := c.exit("p"); code != 3 || !strings.Contains(text, "43 132") {
		t.Errorf("%d, %q", code, text)
	}
	if m := c.call("process/resize", map[string]any{"processId": "p", "cols": 1, "rows": 1}); string(m.Result) != "{}" {
		t.Errorf("after its end: %+v", m)
	}
	c.started(script("pipe", dir, "read x"))
	for process, want := range map[string]string{"pipe": "process pipe has no terminal; start it with `tty`", "none": "unknown process id none"} {
		m := c.call("process/resize", map[string]any{"processId": process, "cols": 80, "rows": 24})
		if m.Error == nil || m.Error.Code != -32600 || m.Error.Message != want {
			t.Errorf("%s: %+v", process, m.Error)
		}
	}
}

// TestCloseStdin: a program gets the end of its input after everything that was written before.
func TestCloseStdin(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	dir := t.TempDir()
	const size, parts = 512 << 10, 4 // more than a pipe holds
	c.started(script("p", dir, "wc -c"))
	chunk := base64.StdEncoding.EncodeToString(make([]byte, size))
	for i := range parts {
		c.post(map[string]any{"id": 0, "method": "process/write", "params": map[string]any{"processId": "p", "chunk": chunk, "writeId": fmt.Sprint(i)}})
	}
	end := map[string]any{"processId": "p"}
	c.post(map[string]any{"id": "end", "method": "process/closeStdin", "params": end})
	if got := c.write("p", "late", "x"); got != "stdinClosed" {
		t.Errorf("a write after the end: %s", got)
	}
	if got := c.write("p", "0", "x"); got != "accepted" { // it was, before the end
		t.Errorf("a write again: %s", got)
	}
	if got := c.status("process/closeStdin", end); got != "accepted" {
		t.Errorf("an end again: %s", got)
	}
	if code, text := c.exit("p"); code != 0 || strings.TrimSpace(text) != fmt.Sprint(size*parts) {
		t.Errorf("%d, %q", code, text)
	}
	none := script("none", dir, "sleep 60")
	none["pipeStdin"] = false
	c.started(none)
	for process, want := range map[string]string{"none": "stdinClosed", "unknown": "unknownProcess"} {
		if got := c.status("process/closeStdin", map[string]any{"processId": process}); got != want {
			t.Errorf("%s: %s, want %s", process, got, want)
		}
	}
}

// TestCloseStdinTerminal: a terminal gets its end-of-file character, once for each write ID.
func TestCloseStdinTerminal(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	c.started(isTerminal("p", t.TempDir(), "stty -echo; echo ready; cat; echo one; cat; echo two; exit 5"))
	c.first("p")
	for range 2 {
		if got := c.status("process/closeStdin", map[string]any{"processId": "p", "writeId": "end"}); got != "accepted" {
			t.Errorf("%s", got)
		}
	}
	if got := c.write("p", "1", "after\n"); got != "accepted" {
		t.Errorf("%s", got)
	}
	c.status("process/closeStdin", map[string]any{"processId": "p"})
	if code, text := c.exit("p"); code != 5 || text != "ready\r\none\r\nafter\r\ntwo\r\n" {
		t.Errorf("%d, %q", code, text)
	}
}

// TestSignals: signals reach the process by name.
func TestSignals(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	dir := t.TempDir()
	for _, test := range []struct {
		signal, text string
		code         int
	}{
		{"SIGTERM", "echo ready; exec sleep 60", 143},
		{"SIGKILL", "echo ready; exec sleep 60", 137},
		{"interrupt", "echo ready; exec sleep 60", 130},
		{"SIGUSR1", "trap 'exit 9' USR1; echo ready; while read x; do :; done", 9},
	} {
		t.Run(test.signal, func(t *testing.T) {
			c.started(script(test.signal, dir, test.text))
			c.first(test.signal)
			if m := c.call("process/signal", map[string]any{"processId": test.signal, "signal": test.signal}); string(m.Result) != "{}" {
				t.Errorf("%+v", m)
			}
			if code, _ := c.exit(test.signal); code != test.code {
				t.Errorf("%d, want %d", code, test.code)
			}
		})
	}
	for _, name := range []string{"TERM", "15", "SIGNONE", "SIGRTMIN", ""} {
		m := c.call("process/signal", map[string]any{"processId": "p", "signal": name})
		if m.Error == nil || m.Error.Code != -32602 || !strings.HasPrefix(m.Error.Message, "unknown variant `"+name+"`, expected `interrupt`") {
			t.Errorf("%q: %+v", name, m)
		}
	}
}

// TestExitSignal: the signal that ended a process is told to a client of extensions, wherever the exit
// is, and no member is new for any other client.
func TestExitSignal(t *testing.T) {
	server := run(t, options())
	for _, extends := range []bool{true, false} {
		t.Run(fmt.Sprint(extends), func(t *testing.T) {
			c := &caller{t: t, speaker: connect(t, server)}
			if m := c.call("initialize", map[string]any{"clientName": "test", "extensionMethods": extends}); m.Error != nil || !strings.Contains(string(m.Result), `"processExitSignal":true`) {
				t.Fatalf("%s, %+v", m.Result, m.Error)
			}
			c.post(map[string]any{"method": "initialized"})
			c.post(map[string]any{"id": "s", "method": "process/start", "params": script("p", "/", "kill -KILL $$")})
			var exited string
			for exited == "" {
				text, err := c.receive()
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(text), `"process/exited"`) {
					exited = string(text)
				}
			}
			told := []string{exited, string(c.call("process/read", map[string]any{"processId": "p"}).Result)}
			if extends {
				told = append(told, string(c.call("process/list", nil).Result))
			}
			for _, text := range told {
				if strings.Contains(text, `"signal":"SIGKILL"`) != extends || strings.Contains(text, `"signal"`) != extends || !strings.Contains(text, `"exitCode":137`) {
					t.Error(text)
				}
			}
		})
	}
}

// TestTerminateGrace: a process can end by itself within its time, and is killed with what it
// started after it. A request without time does not wait for that of an earlier one.
func TestTerminateGrace(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	const long = 3_600_000
	stubborn := "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; echo ready; sleep 600' & wait; sleep 600"
	for _, test := range []struct {
		name, text string
		tty        bool
		graces     []int
		code       int
		said       string
	}{
		{"ends by itself", "trap 'echo bye; exit 7' TERM; echo ready; while read x; do :; done", false, []int{long}, 7, "ready\nbye\n"},
		{"stopped", "trap 'exit 8' TERM; (while ! grep -q ') T ' /proc/$$/stat; do :; done; echo ready) & kill -STOP $$; while :; do read x; done", false, []int{long}, 8, "ready\n"},
		{"shell on a terminal", "trap '' TERM; echo ready; exec cat", true, []int{long}, 129, "ready\r\n"},
		{"deadline", stubborn, false, []int{1}, 137, "ready\n"},
		{"an earlier deadline", stubborn, false, []int{long, 1}, 137, "ready\n"},
		{"a later deadline", stubborn, false, []int{1, long}, 137, "ready\n"},
		{"at once after all", stubborn, false, []int{long, 0}, 137, "ready\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			params := script(test.name, t.TempDir(), test.text)
			params["tty"] = test.tty
			c.started(params)
			c.first(test.name)
			for i, grace := range test.graces {
				m := c.call("process/terminate", map[string]any{"processId": test.name, "graceMs": grace})
				if string(m.Result) != `{"running":true}` && i == 0 {
					t.Errorf("%+v", m)
				}
			}
			if code, text := c.exit(test.name); code != test.code || text != test.said {
				t.Errorf("%d, %q, want %d, %q", code, text, test.code, test.said)
			}
			if m := c.call("process/terminate", map[string]any{"processId": test.name, "graceMs": 1}); string(m.Result) != `{"running":false}` {
				t.Errorf("after its end: %+v", m)
			}
		})
	}
}

// listed is an entry of process/list.
type listed struct {
	ProcessID                      string
	Argv                           []string
	TTY, Starting, Running, Closed bool
	StartedAtMs                    int64
	ExitCode                       *int
	NextSeq                        int
}

func (c *caller) list() (list []listed) {
	c.t.Helper()
	var result struct{ Processes []listed }
	m := c.call("process/list", map[string]any{})
	if m.Error != nil || json.Unmarshal(m.Result, &result) != nil || result.Processes == nil {
		c.t.Fatalf("%+v", m)
	}
	return result.Processes
}

// TestList: a session knows its processes, also after a resumption, and no others.
func TestList(t *testing.T) {
	server := run(t, options())
	c, id := meet(t, server, nil)
	other, _ := meet(t, server, nil)
	other.started(script("other", t.TempDir(), "sleep 60"))
	if got := c.list(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	c.started(script("b", t.TempDir(), "exit 4"))
	c.ended("b")
	c.started(isTerminal("a", t.TempDir(), "echo hello; sleep 60"))
	c.first("a")
	if m := c.call("process/start", script("failed", "/nonexistent", "true")); m.Error == nil {
		t.Error("it started")
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	d := resumed(t, server, id)
	d.post(map[string]any{"method": "initialized"})
	got := d.list()
	if len(got) != 2 || got[0].StartedAtMs == 0 || got[0].StartedAtMs > got[1].StartedAtMs {
		t.Fatalf("%+v", got)
	}
	got[0].StartedAtMs, got[1].StartedAtMs = 0, 0
	four := 4
	want := []listed{
		{ProcessID: "b", Argv: []string{"sh", "-c", "exit 4"}, ExitCode: &four, Closed: true, NextSeq: 3},
		{ProcessID: "a", Argv: []string{"sh", "-c", "echo hello; sleep 60"}, TTY: true, Running: true, NextSeq: 2},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if m := d.call("process/list", []int{}); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("%+v", m)
	}
}

// TestTruncated: a read says that output is missing, and only then.
func TestTruncated(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	c.started(script("p", t.TempDir(), "head -c 3000000 /dev/zero"))
	c.ended("p")
	read := func(after uint64) (first, truncated uint64) {
		t.Helper()
		var result struct {
			Chunks          []struct{ Seq uint64 }
			TruncatedBefore uint64
		}
		m := c.call("process/read", map[string]any{"processId": "p", "afterSeq": after, "maxBytes": 1})
		if m.Error != nil || json.Unmarshal(m.Result, &result) != nil || len(result.Chunks) != 1 {
			t.Fatalf("%+v", m)
		}
		return result.Chunks[0].Seq, result.TruncatedBefore
	}
	first, truncated := read(0)
	if first < 2 || truncated != first {
		t.Errorf("the first chunk is %d, truncatedBefore is %d", first, truncated)
	}
	if _, truncated := read(first - 2); truncated != first {
		t.Errorf("after %d: %d", first-2, truncated)
	}
	if _, truncated := read(first - 1); truncated != 0 {
		t.Errorf("after %d: %d", first-1, truncated)
	}
}

// TestExtensionMethods: methods that are none of the protocol exist only for clients that ask
// for them.
func TestExtensionMethods(t *testing.T) {
	server := run(t, options())
	asked, _ := meet(t, server, nil)
	asked.list()
	c := &caller{t: t, speaker: connect(t, server)}
	if m := c.call("initialize", map[string]any{"clientName": "test"}); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	c.post(map[string]any{"method": "initialized"})
	for _, method := range []string{"process/resize", "process/closeStdin", "process/list", "fs/rename", "fs/chmod", "fs/symlink", "fs/append"} {
		if m := c.call(method, map[string]any{"processId": "p"}); m.Error == nil || m.Error.Code != -32601 {
			t.Errorf("%s: %+v", method, m)
		}
	}
}
