// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// TestCancel cancels each request that waits. It is answered once, with the error for that, and what
// it was about goes on.
func TestCancel(t *testing.T) {
	gone, asked := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(gone)
	}))
	defer web.Close()
	o := runOptions()
	o.AllowHTTP = true
	server := run(t, o)
	questions := 0
	d := drive(t, server, func(*runQuestion) any { questions++; return nil })
	d.started(script("p", "/", "cat"))
	m := d.call("run/start", map[string]any{"args": []string{"cat"}, "openStdin": true})
	var started struct{ RunID string }
	if m.Error != nil || json.Unmarshal(m.Result, &started) != nil {
		t.Fatalf("%+v", m)
	}
	for _, test := range []struct {
		name, method string
		params       map[string]any
		begun        func() // returns when the request waits; nil: it does when it was read
	}{
		{"process/read", "process/read", map[string]any{"processId": "p", "waitMs": 3600_000}, nil},
		{"run/read", "run/read", map[string]any{"runId": started.RunID, "after": 0, "waitMs": 3600_000}, nil},
		{"run/wait", "run/wait", map[string]any{"runId": started.RunID, "for": map[string]any{"exit": true}}, nil},
		{"http/request", "http/request", map[string]any{"method": "GET", "url": web.URL, "requestId": "r"}, func() { <-asked }},
		{"run/start that asks", "run/start", map[string]any{"args": []string{"--ask", "rm", "-rf", "/nothing"}}, func() {
			d.until(func(m *message) bool { return m.Method == "run/approve" })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d.post(map[string]any{"id": "w", "method": test.method, "params": test.params})
			if test.begun != nil {
				test.begun()
			}
			d.post(map[string]any{"method": "request/cancel", "params": map[string]any{"id": "other"}})
			d.post(map[string]any{"method": "request/cancel", "params": map[string]any{"id": "w"}})
			d.post(map[string]any{"method": "request/cancel", "params": map[string]any{"id": "w"}})
			m := d.until(func(m *message) bool { return string(m.ID) == `"w"` && m.Method == "" })
			if m.Error == nil || m.Error.Code != -32800 {
				t.Fatalf("%+v, %s", m.Error, m.Result)
			}
			d.post(map[string]any{"id": "next", "method": "environment/status"})
			d.until(func(m *message) bool {
				if string(m.ID) == `"w"` {
					t.Errorf("a second message: %+v", m)
				}
				return string(m.ID) == `"next"`
			})
		})
	}
	<-gone
	if m := d.call("run/list", nil); strings.Count(string(m.Result), "runId") != 1 {
		t.Errorf("runs: %s", m.Result)
	}
	// What it prints may come before the answer.
	d.post(map[string]any{"id": "write", "method": "process/write",
		"params": map[string]any{"processId": "p", "chunk": []byte("text\n"), "writeId": "w"}})
	if got := d.first("p"); got != "text" {
		t.Errorf("the process printed %q", got)
	}
	if questions != 1 {
		t.Errorf("%d questions", questions)
	}
}

// TestCancelProtocol ends the connection of a client that breaks the protocol.
func TestCancelProtocol(t *testing.T) {
	server := run(t, options())
	for name, test := range map[string]struct {
		extends bool
		params  any
	}{
		"not asked for":   {false, map[string]any{"id": 1}},
		"no ID":           {true, map[string]any{}},
		"null":            {true, map[string]any{"id": nil}},
		"another kind":    {true, map[string]any{"id": []int{1}}},
		"no parameters":   {true, nil},
		"a broken number": {true, map[string]any{"id": 1.5}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &caller{t: t, speaker: connect(t, server)}
			c.call("initialize", map[string]any{"clientName": "test", "extensionMethods": test.extends})
			c.post(map[string]any{"method": "initialized"})
			c.post(map[string]any{"method": "request/cancel", "params": test.params})
			if text, err := c.receive(); err == nil {
				t.Errorf("%s", text)
			}
		})
	}
}

// TestCancelStart cancels the start of a process that waits for its turn. It does not run, its ID is
// free again, and the others start in their order.
func TestCancelStart(t *testing.T) {
	server, dir := run(t, options()), t.TempDir()
	c, _ := meet(t, server, nil)
	release := execserver.HoldStarts(server.Server)
	start := func(id string) {
		c.post(map[string]any{"id": id, "method": "process/start",
			"params": script(id, dir, "echo "+id+" >>log")})
	}
	answered := func(id string) message {
		t.Helper()
		m := c.until(func(m *message) bool { return m.Method == "" })
		if string(m.ID) != `"`+id+`"` {
			t.Errorf("%s is answered, want %s", m.ID, id)
		}
		return m
	}
	start("a")
	start("b")
	start("c")
	c.post(map[string]any{"method": "request/cancel", "params": map[string]any{"id": "b"}})
	if m := answered("b"); m.Error == nil || m.Error.Code != -32800 {
		t.Errorf("%+v, %s", m.Error, m.Result)
	}
	release()
	answered("a")
	answered("c")
	start("b")
	answered("b")
	for _, id := range []string{"a", "b", "c"} {
		c.ended(id)
	}
	lines := strings.Fields(content(filepath.Join(dir, "log")))
	if slices.Sort(lines); !slices.Equal(lines, []string{"a", "b", "c"}) {
		t.Errorf("%q", lines)
	}
}

// observer returns a client that observes a session, or its error.
func observer(t *testing.T, server testServer, id string) (*caller, message) {
	t.Helper()
	c := &caller{t: t, speaker: connect(t, server)}
	m := c.call("initialize", map[string]any{"clientName": "test", "observeSessionId": id,
		"extensionMethods": true})
	if m.Error == nil {
		c.post(map[string]any{"method": "initialized"})
	}
	return c, m
}

// TestObserve looks at the session of another connection, and cannot do more.
func TestObserve(t *testing.T) {
	o := options()
	o.Detached = -1
	server := run(t, o)
	owner, id := meet(t, server, nil)
	dir := t.TempDir()
	owner.started(script("p", dir, "echo before; cat; echo after; exec sleep 3600"))
	owner.first("p")
	c, m := observer(t, server, id)
	if m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	if m := c.call("process/list", nil); !strings.Contains(string(m.Result), `"processId":"p"`) {
		t.Errorf("%s", m.Result)
	}
	if m := c.call("process/read", map[string]any{"processId": "p",
		"afterSeq": 0}); !strings.Contains(string(m.Result), `"YmVmb3JlCg=="`) {
		t.Errorf("%s", m.Result)
	}
	for method, params := range map[string]map[string]any{
		"process/start":      script("q", dir, "touch started"),
		"process/write":      {"processId": "p", "chunk": []byte("x"), "writeId": "o"},
		"process/closeStdin": {"processId": "p"},
		"process/signal":     {"processId": "p", "signal": "interrupt"},
		"process/terminate":  {"processId": "p"},
		"process/resize":     {"processId": "p", "cols": 1, "rows": 1},
		"fs/writeFile":       {"path": "file://" + dir + "/written", "dataBase64": "eA=="},
		"fs/readFile":        {"path": "file:///etc/hostname"},
		"fs/watchMissing":    {"watchId": 1, "missing": []string{}},
		"http/request":       {"method": "GET", "url": "http://127.0.0.1:1", "requestId": "r"},
	} {
		if m := c.call(method, params); m.Error == nil || m.Error.Code != -32600 ||
			!strings.Contains(m.Error.Message, "observes") {
			t.Errorf("%s: %+v, %s", method, m.Error, m.Result)
		}
	}
	for _, name := range []string{"started", "written"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s exists", name)
		}
	}
	// A read of the observer waits for what the owner types, and no event comes to it.
	c.post(map[string]any{"id": "r", "method": "process/read",
		"params": map[string]any{"processId": "p", "afterSeq": 1, "waitMs": 3600_000}})
	owner.call("process/write", map[string]any{"processId": "p", "chunk": []byte("typed\n"), "writeId": "w"})
	if m := c.until(func(m *message) bool { return string(m.ID) == `"r"` }); !strings.Contains(string(m.Result), `"dHlwZWQK"`) {
		t.Errorf("%+v, %s", m.Error, m.Result)
	}
	if len(c.events) > 0 {
		t.Errorf("events: %+v", c.events)
	}
	// The observer does not hold the session, and ends with it.
	if err := owner.close(); err != nil {
		t.Fatal(err)
	}
	if text, err := c.receive(); err == nil {
		t.Errorf("%s", text)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the observer outlives the session")
	}
	if _, m := observer(t, server, id); m.Error == nil || m.Error.Message != "unknown session id "+id {
		t.Errorf("%+v", m)
	}
}

// TestObserveCredential requires that a session is observed only with the credential that made it.
func TestObserveCredential(t *testing.T) {
	server := run(t, options())
	_, id := meet(t, server.as("alice"), nil)
	if _, m := observer(t, server.as("mallory"), id); m.Error == nil ||
		m.Error.Message != "unknown session id "+id {
		t.Errorf("%+v, %s", m.Error, m.Result)
	}
	if _, m := observer(t, server.as("alice"), id); m.Error != nil {
		t.Errorf("%+v", m.Error)
	}
}
