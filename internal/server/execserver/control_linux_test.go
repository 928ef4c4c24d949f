// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
)

// write writes to a process, and returns the status.
func (c *caller) write(process, id, text string) string {
	c.t.Helper()
	return c.status("process/write", map[string]any{"processId": process, "writeId": id,
		"chunk": base64.StdEncoding.EncodeToString([]byte(text))})
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

// TestCloseStdin: a program gets the end of its input after everything that was written before.
func TestCloseStdin(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	const size, parts = 512 << 10, 4 // more than a pipe holds
	c.started(script("p", t.TempDir(), "wc -c"))
	chunk := base64.StdEncoding.EncodeToString(make([]byte, size))
	for i := range parts {
		c.post(map[string]any{"id": 0, "method": "process/write",
			"params": map[string]any{"processId": "p", "chunk": chunk, "writeId": fmt.Sprint(i)}})
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
}

// TestControl: what a process does not have is refused with the reason, and what came too late has no effect.
func TestControl(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	none, terminal := script("none", "/", "exec sleep 600"), script("terminal", "/", "exit 5")
	none["pipeStdin"], terminal["tty"] = false, true
	c.started(none)
	c.started(script("pipe", "/", "read x"))
	c.started(terminal)
	c.ended("terminal")
	for _, test := range []struct {
		method, process string
		more            map[string]any
		code            int
		want            string // the beginning of the result, or of the error
	}{
		{"process/resize", "pipe", map[string]any{"cols": 80, "rows": 24}, -32600, "process pipe has no terminal; start it with `tty`"},
		{"process/resize", "unknown", map[string]any{"cols": 80, "rows": 24}, -32600, "unknown process id unknown"},
		{"process/resize", "terminal", map[string]any{"cols": 1, "rows": 1}, 0, "{}"},
		{"process/closeStdin", "none", nil, 0, `{"status":"stdinClosed"}`},
		{"process/closeStdin", "unknown", nil, 0, `{"status":"unknownProcess"}`},
		{"process/terminate", "terminal", map[string]any{"graceMs": 1}, 0, `{"running":false}`},
		{"process/signal", "none", map[string]any{"signal": "TERM"}, -32602, "unknown variant `TERM`, expected `interrupt`"},
		{"process/signal", "none", map[string]any{"signal": "15"}, -32602, "unknown variant `15`"},
		{"process/signal", "none", map[string]any{"signal": "SIGRTMIN"}, -32602, "unknown variant `SIGRTMIN`"},
		{"process/signal", "none", map[string]any{"signal": "SIGTERM"}, 0, "{}"},
	} {
		params := map[string]any{"processId": test.process}
		maps.Copy(params, test.more)
		m := c.call(test.method, params)
		code, got := 0, string(m.Result)
		if m.Error != nil {
			code, got = m.Error.Code, m.Error.Message
		}
		if code != test.code || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s %v: %d %s, want %d %s", test.method, params, code, got, test.code, test.want)
		}
	}
	if code, _ := c.exit("none"); code != 143 {
		t.Errorf("exit code %d", code)
	}
}

// TestExitSignal: the signal that ended a process is told to a client of extensions, wherever the exit
// is, and no member is new for any other client.
func TestExitSignal(t *testing.T) {
	server := run(t, options())
	for _, extends := range []bool{true, false} {
		t.Run(fmt.Sprint(extends), func(t *testing.T) {
			c := &caller{t: t, speaker: connect(t, server)}
			if m := c.call("initialize", map[string]any{"clientName": "test",
				"extensionMethods": extends}); m.Error != nil ||
				!strings.Contains(string(m.Result), `"processExitSignal":true`) {
				t.Fatalf("%s, %+v", m.Result, m.Error)
			}
			c.post(map[string]any{"method": "initialized"})
			c.post(map[string]any{"id": "s", "method": "process/start",
				"params": script("p", "/", "kill -KILL $$")})
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
				if strings.Contains(text, `"signal":"SIGKILL"`) != extends ||
					strings.Contains(text, `"signal"`) != extends ||
					!strings.Contains(text, `"exitCode":137`) {
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
