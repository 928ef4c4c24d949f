// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestFlood: processes that print what their client does not read take a bounded amount of memory
// of the server, and do not slow down another session. Nothing is lost when it reads again.
func TestFlood(t *testing.T) {
	server := run(t, options())
	before := heap()
	slow, _ := meet(t, server, nil)
	const floods, size, most = 4, 7 << 20, 24 << 20
	dir := t.TempDir()
	for i := range floods {
		slow.started(script(fmt.Sprint("flood", i), dir,
			fmt.Sprintf("read x; head -c %d /dev/zero; touch done", size)))
	}
	for i := range floods { // nothing is read from here on
		slow.post(map[string]any{"id": i + 100, "method": "process/write",
			"params": map[string]any{"processId": fmt.Sprint("flood", i), "chunk": []byte("\n"),
				"writeId": "1"}})
	}
	other, _ := meet(t, server, nil)
	for i := range 15 {
		id := fmt.Sprint("p", i)
		other.started(script(id, "/", "echo "+id))
		if got := other.printed(id, 1); got != id+"\n" {
			t.Errorf("%q, want %q", got, id)
		}
	}
	if after := heap(); after > before+most {
		t.Errorf("%d bytes are held, want at most %d", after-before, most)
	}
	if exists(filepath.Join(dir, "done")) {
		t.Errorf("%d bytes were taken that no client reads", size)
	}
	total, closed := 0, 0
	for i := 0; closed < floods; i++ {
		for i == len(slow.events) {
			slow.more()
		}
		m := slow.events[i]
		total += len(m.Params.Chunk)
		if m.Method == "process/closed" {
			closed++
		}
	}
	if total != floods*size {
		t.Errorf("%d bytes came, want %d", total, floods*size)
	}
}

// printed waits until a process has printed so many lines, and returns its output.
func (c *caller) printed(process string, lines int) string {
	c.t.Helper()
	for {
		text := ""
		for _, m := range c.events {
			if m.Method == "process/output" && m.Params.ProcessID == process {
				text += string(m.Params.Chunk)
			}
		}
		if strings.Count(text, "\n") >= lines {
			return text
		}
		c.more()
	}
}

// heap returns how many bytes this program holds.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one found in pools
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestSessionGuesses: only the ID as it was given is that of a session, and every other text has
// the same answer.
func TestSessionGuesses(t *testing.T) {
	server := run(t, options())
	c, id := meet(t, server, nil)
	c.started(script("p", "/", "sleep 60"))
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	guess := &caller{t: t, speaker: connect(t, server)}
	next := []byte(id)
	next[len(next)-1] ^= 1
	for _, test := range []struct{ name, id string }{
		{"the next", string(next)},
		{"capitals", "A" + strings.ToUpper(id)[1:]},
		{"prefix", id[:35]},
		{"space", id + " "},
		{"without dashes", strings.ReplaceAll(id, "-", "")},
		{"zero byte", id + "\x00"},
		{"pattern", "*"},
		{"nil UUID", "00000000-0000-0000-0000-000000000000"},
		{"long", strings.Repeat(id, 20_000)},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := guess.call("initialize", map[string]any{"clientName": "x", "resumeSessionId": test.id})
			if m.Error == nil || m.Error.Code != -32600 || m.Error.Message != "unknown session id "+test.id {
				t.Errorf("%s, %+v", m.Result, m.Error)
			}
		})
	}
	resumed(t, server, id)
}

// TestSessionIDs: IDs of sessions have 122 random bits.
func TestSessionIDs(t *testing.T) {
	server := run(t, options())
	seen := map[string]bool{}
	for range 50 {
		c, id := meet(t, server, nil)
		if len(id) != 36 || id[14] != '4' || seen[id[:8]] {
			t.Errorf("ID %s", id)
		}
		seen[id[:8]] = true
		_ = c.close()
	}
}

// TestJunk: what is no base64 is refused before anything is done with it.
func TestJunk(t *testing.T) {
	file := writeFile(t, "old")
	uri := "file://" + file
	o := options()
	o.AllowHTTP = true
	c, _ := meet(t, run(t, o), nil)
	c.started(script("p", "/", "read x; echo got $x"))
	for _, junk := range []string{"!!!!", "aGk", "aGk=\n", "aGl=", "aGk=aGk=", "-_-_", "=", "aGk\u00e9"} {
		t.Run(fmt.Sprintf("%q", junk), func(t *testing.T) {
			for _, test := range []struct {
				method string
				params map[string]any
			}{
				{"process/write", map[string]any{"processId": "p", "chunk": junk, "writeId": junk}},
				{"fs/writeFile", map[string]any{"path": uri, "dataBase64": junk}},
				{"http/request", map[string]any{"method": "POST", "url": "http://127.0.0.1:1/", "requestId": "r", "bodyBase64": junk}},
			} {
				if m := c.call(test.method, test.params); m.Error == nil || m.Error.Code != -32602 &&
					m.Error.Code != -32600 {
					t.Errorf("%s: %s, %+v", test.method, m.Result, m.Error)
				}
			}
		})
	}
	c.call("process/write", map[string]any{"processId": "p",
		"chunk": base64.StdEncoding.EncodeToString([]byte("1\n")), "writeId": "1"})
	if got := c.printed("p", 1); got != "got 1\n" {
		t.Errorf("%q was typed", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestIDsUsedAgain: an ID that is in use is refused, or has its first meaning.
func TestIDsUsedAgain(t *testing.T) {
	c, _ := meet(t, run(t, options()), nil)
	for range 2 {
		c.post(map[string]any{"id": "same", "method": "environment/status"})
	}
	answers := 0
	c.until(func(m *message) bool {
		if string(m.ID) == `"same"` && m.Error == nil {
			answers++
		}
		return answers == 2
	})
	write := func(text, id string) {
		t.Helper()
		m := c.call("process/write", map[string]any{"processId": "p",
			"chunk": base64.StdEncoding.EncodeToString([]byte(text)), "writeId": id})
		if string(m.Result) != `{"status":"accepted"}` {
			t.Errorf("%s, %+v", m.Result, m.Error)
		}
	}
	exists := func(id string) {
		t.Helper()
		m := c.call("process/start", script(id, "/", "echo another"))
		if m.Error == nil || m.Error.Code != -32600 || m.Error.Message != "process "+id+" already exists" {
			t.Errorf("%s, %+v", m.Result, m.Error)
		}
	}
	c.started(script("p", "/", "while read x; do echo got $x; done"))
	exists("p")
	write("1\n", "1")
	write("2\n", "1")
	write("3\n", "2")
	if got := c.printed("p", 2); got != "got 1\ngot 3\n" {
		t.Errorf("%q", got)
	}
	c.call("process/terminate", map[string]any{"processId": "p"})
	c.ended("p")
	exists("p") // its output can be read
	missing := script("q", "/", "")
	missing["argv"] = []string{"/missing/program"}
	if m := c.call("process/start", missing); m.Error == nil {
		t.Errorf("%s", m.Result)
	}
	c.started(script("q", "/", "echo hi"))
	c.ended("q")
	opened := map[string]any{"handleId": "h", "path": "file://" + writeFile(t, "old")}
	if m := c.call("fs/open", opened); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
	if m := c.call("fs/open", opened); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("%s, %+v", m.Result, m.Error)
	}
}
