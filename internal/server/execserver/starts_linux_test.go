// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// lines returns how many lines a file has, which each start of a test adds one to.
func lines(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(text), "\n")
}

// TestRunKey: a start with the key of an earlier one is answered with what that came to, and performed where
// that was refused.
func TestRunKey(t *testing.T) {
	prepared := 0
	o, refuses := options(), false
	o.Prepare = func(ctx context.Context, r *runs.Request) (*runs.Prepared, error) {
		prepared++
		return prepare(ctx, r)
	}
	o.Admit = func(string) (func(), error) {
		if refuses {
			return nil, errors.New("no free slot")
		}
		return nil, nil
	}
	server := run(t, o)
	d := drive(t, server, nil)
	other := drive(t, server, nil)
	stranger := drive(t, server.as("stranger"), nil)
	start := func(d *driver, key string, args ...string) message {
		return d.call("run/start", map[string]any{"args": args, "idempotencyKey": key})
	}
	var first startedRun
	if m := start(d, "a", "sleep", "1000"); json.Unmarshal(m.Result, &first) != nil || !first.Started {
		t.Fatalf("%+v", m)
	}
	run := map[string]any{"runId": first.RunID}
	missing := start(d, "not run", "/no/such/program")
	for _, test := range []struct {
		name   string
		before func()
		by     *driver
		key    string
		args   []string
		same   json.RawMessage // the result; nil for another one
		error  string          // part of it
		starts bool
	}{
		{name: "again", by: d, key: "a", same: json.RawMessage(`{"runId":"` + first.RunID + `","started":true}`)},
		{name: "in another session", by: other, key: "a",
			same: json.RawMessage(`{"runId":"` + first.RunID + `","started":true}`)},
		{name: "another command", by: other, key: "a", args: []string{"--broken"},
			same: json.RawMessage(`{"runId":"` + first.RunID + `","started":true}`)},
		{name: "of another credential", by: stranger, key: "a", starts: true},
		{name: "after the end", before: func() { d.result(&struct{}{}, "run/terminate", run) }, by: other, key: "a",
			same: json.RawMessage(`{"runId":"` + first.RunID + `","started":true}`)},
		{name: "after its removal", before: func() { d.result(&struct{}{}, "run/remove", run) }, by: d, key: "a",
			same: json.RawMessage(`{"runId":"` + first.RunID + `","started":true}`)},
		{name: "not run", by: other, key: "not run", same: missing.Result},
		{name: "invalid", by: d, key: "b", args: []string{"--broken"}, error: "unknown flag", starts: true},
		{name: "not admitted", before: func() { refuses = true }, by: d, key: "b", error: "no free slot"},
		{name: "after both", before: func() { refuses = false }, by: d, key: "b", starts: true},
		{name: "an empty key", by: d, key: "", error: "idempotencyKey must not be empty"},
		{name: "a long key", by: d, key: strings.Repeat("k", 257), error: "at most 256 bytes"},
		{name: "no longer key", by: d, key: strings.Repeat("k", 256), starts: true},
	} {
		if test.before != nil {
			test.before()
		}
		prepared = 0
		args := test.args
		if args == nil {
			args = []string{"true"}
		}
		m := start(test.by, test.key, args...)
		if (prepared == 1) != test.starts {
			t.Errorf("%s: %d were prepared", test.name, prepared)
		}
		switch {
		case test.error != "":
			if m.Error == nil || !strings.Contains(m.Error.Message, test.error) {
				t.Errorf("%s: %+v, %s", test.name, m.Error, m.Result)
			}
		case m.Error != nil, test.same != nil && string(m.Result) != string(test.same):
			t.Errorf("%s: %+v, %s; want %s", test.name, m.Error, m.Result, test.same)
		}
	}
}

// TestRunKeyWaits: a start waits for one with the same key that waits for an approval. It is made where the
// connection of that is cut, and has the same result where the approval is denied.
func TestRunKeyWaits(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(map[bool]string{false: "denied", true: "cut"}[cut], func(t *testing.T) {
			server, dir := run(t, runOptions()), t.TempDir()
			asks := drive(t, server, func(*runQuestion) any { return nil })
			start := map[string]any{"args": []string{"--ask", "touch", "ran"}, "cwd": dir, "idempotencyKey": "a"}
			asks.post(map[string]any{"id": "first", "method": "run/start", "params": start})
			asks.until(func(m *message) bool { return m.Method == "run/approve" })
			again := drive(t, server, func(*runQuestion) any {
				return map[string]any{"result": map[string]any{"decision": "approved"}}
			})
			again.post(map[string]any{"id": "again", "method": "run/start", "params": start})
			again.call("run/list", nil) // it came before
			if again.answered[`"again"`] || len(again.asked) > 0 {
				t.Error("it does not wait")
			}
			if cut {
				if w, ok := asks.speaker.(*answering).speaker.(*end); !ok || w.close() != nil {
					t.Fatal("not cut")
				}
			} else {
				asks.post(map[string]any{"id": asks.asked[0].ID,
					"result": map[string]any{"decision": "denied", "message": "because"}})
			}
			m := again.until(func(m *message) bool { return string(m.ID) == `"again"` })
			var r startedRun
			if m.Error != nil || json.Unmarshal(m.Result, &r) != nil || r.Started != cut || len(again.asked) > 0 != cut {
				t.Errorf("%+v, %s, %d questions", m.Error, m.Result, len(again.asked))
			}
			if r.Started {
				again.over(r.RunID)
			} else if first := asks.until(func(m *message) bool {
				return string(m.ID) == `"first"`
			}); string(first.Result) != string(m.Result) {
				t.Errorf("%s, want %s", m.Result, first.Result)
			}
			if ran(dir) != cut {
				t.Errorf("it ran: %v", ran(dir))
			}
		})
	}
}

// TestProcessKey: a start with the key of an earlier one has the answer of that, in its session, and is
// refused in another one, which hears where the process is. What was refused is performed.
func TestProcessKey(t *testing.T) {
	server, dir := run(t, options()), t.TempDir()
	c, session := meet(t, server, nil)
	other, _ := meet(t, server, nil)
	stranger, _ := meet(t, server.as("stranger"), nil)
	start := func(c *caller, process, key string) message {
		params := script(process, dir, "echo >>log")
		params["idempotencyKey"] = key
		return c.call("process/start", params)
	}
	first := start(c, "p", "a")
	if first.Error != nil {
		t.Fatalf("%+v", first.Error)
	}
	c.ended("p")
	if m := start(other, "taken", "b"); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	other.ended("taken")
	long := strings.Repeat("p", 250)
	for _, test := range []struct {
		name, process, key string
		by                 *caller
		error, reason      string
		starts             bool
	}{
		{name: "again", process: "p", key: "a", by: c},
		{name: "in another session", process: "p", key: "a", by: other, reason: "started",
			error: "in session " + session},
		{name: "of another credential", process: "stranger", key: "a", by: stranger, starts: true},
		{name: "of another session", process: "q", key: "b", by: c, reason: "started", error: "in session"},
		{name: "an ID that is taken", process: "taken", key: "c", by: other, error: "already exists"},
		{name: "after that", process: "free", key: "c", by: other, starts: true},
		{name: "an empty key", process: "r", key: "", by: c, error: "idempotencyKey must not be empty"},
		{name: "a long key", process: "r", key: strings.Repeat("k", 257), by: c, error: "at most 256 bytes"},
		{name: "a long ID", process: long + "1234567", key: "d", by: c, error: "processId must have at most 256"},
		{name: "no longer ones", process: long, key: strings.Repeat("k", 256), by: c, starts: true},
	} {
		before := lines(t, filepath.Join(dir, "log"))
		m := start(test.by, test.process, test.key)
		switch {
		case test.error == "" && m.Error != nil,
			test.error != "" && (m.Error == nil || !strings.Contains(m.Error.Message, test.error) ||
				m.Error.Data.Reason != test.reason || test.name == "in another session" &&
				(m.Error.Data.Session != session || m.Error.Code != -32600)):
			t.Errorf("%s: %+v, %s", test.name, m.Error, m.Result)
		case test.name == "again" && string(m.Result) != string(first.Result):
			t.Errorf("%s, want %s", m.Result, first.Result)
		}
		if test.starts {
			test.by.ended(test.process)
		}
		if n := lines(t, filepath.Join(dir, "log")) - before; n > 1 || (n == 1) != test.starts {
			t.Errorf("%s: %d were started", test.name, n)
		}
	}
}

// TestProcessKeyWaits: a start waits for one with the same key that waits for its turn. It is made where the
// connection of that is cut, and answered where it is not, or canceled.
func TestProcessKeyWaits(t *testing.T) {
	for _, test := range []struct{ name, ends string }{
		{"cut", "cut"}, {"started", "release"}, {"canceled", "cancel"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, dir := run(t, options()), t.TempDir()
			c, session := meet(t, server, nil)
			release := execserver.HoldStarts(server.Server)
			start := script("p", dir, "echo >>p")
			start["idempotencyKey"] = "a"
			c.post(map[string]any{"id": "first", "method": "process/start", "params": start})
			c.call("environment/status", nil)
			other, own := meet(t, server, nil)
			other.post(map[string]any{"id": "again", "method": "process/start", "params": start})
			other.call("environment/status", nil)
			if other.answered[`"again"`] {
				t.Error("it does not wait")
			}
			switch test.ends {
			case "cut":
				if err := c.close(); err != nil {
					t.Fatal(err)
				}
				defer release()
			case "release":
				release()
			case "cancel":
				defer release()
				other.post(map[string]any{"method": "request/cancel", "params": map[string]any{"id": "again"}})
			}
			m := other.until(func(m *message) bool { return string(m.ID) == `"again"` })
			switch {
			case test.ends == "cut":
				if m.Error != nil {
					t.Fatalf("%+v", m.Error)
				}
				session = own
				other.ended("p")
			case m.Error == nil || m.Error.Data.Session == "" != (test.ends == "cancel"):
				t.Errorf("%+v, %s", m.Error, m.Result)
			}
			if test.ends == "cancel" {
				return
			}
			third, _ := meet(t, server, nil)
			if m := third.call("process/start", start); m.Error == nil || m.Error.Data.Session != session {
				t.Errorf("%+v, want session %s", m, session)
			}
			if test.ends == "release" {
				c.ended("p")
			}
			if n := lines(t, filepath.Join(dir, "p")); n != 1 {
				t.Errorf("%d were started", n)
			}
		})
	}
}

// A gate counts what it admits for each session.
type gate struct {
	sync.Mutex
	refuses error
	calls   map[string]int
	inside  map[string]int
}

func (g *gate) admit(session string) (func(), error) {
	g.Lock()
	defer g.Unlock()
	g.calls[session]++
	if g.refuses != nil {
		return nil, g.refuses
	}
	g.inside[session]++
	return func() {
		g.Lock()
		defer g.Unlock()
		g.inside[session]--
	}, nil
}

// TestAdmit: each start is admitted before anything of it begins, until all of it is over, and nothing else
// is.
func TestAdmit(t *testing.T) {
	g := &gate{calls: map[string]int{}, inside: map[string]int{}}
	o := runOptions()
	o.Admit = g.admit
	server, dir := run(t, o), t.TempDir()
	c := &driver{caller: &caller{t: t, speaker: connect(t, server)}}
	session := c.greet(nil)
	process := func(id, text string) map[string]any { return script(id, dir, text) }
	missing := script("x", dir, "")
	missing["argv"] = []string{"/no/such/program"}
	keyed := process("k", "exit")
	keyed["idempotencyKey"] = "a"
	full := &wire.Error{Code: -32050, Message: "no free slot", Data: json.RawMessage(`{"reason":"noSlot"}`)}
	for _, test := range []struct {
		name, method  string
		params        map[string]any
		refuses       error
		code          int // of the error; 0 for none
		reason        string
		calls, inside int // afterwards; of what has ended, when its client is told
		ends          string
	}{
		{name: "a process", method: "process/start", params: process("p", "sleep 1000"), calls: 1, inside: 1},
		{name: "a process that ends", method: "process/start", params: process("q", "exit 1"), calls: 1, inside: 1,
			ends: "q"},
		{name: "a process that is not found", method: "process/start", params: missing, code: -32603, calls: 1,
			inside: 1},
		{name: "an ID that is taken", method: "process/start", params: process("p", ""), code: -32600, inside: 1},
		{name: "a key", method: "process/start", params: keyed, calls: 1, inside: 1, ends: "k"},
		{name: "the key again", method: "process/start", params: keyed, inside: 1},
		{name: "a run", method: "run/start", params: map[string]any{"args": []string{"sleep", "1000"}}, calls: 1,
			inside: 2},
		{name: "a run that ends", method: "run/start", params: map[string]any{"args": []string{"true"}}, calls: 1,
			inside: 2, ends: "run"},
		{name: "a run that does not run", method: "run/start",
			params: map[string]any{"args": []string{"/no/such/program"}}, calls: 1, inside: 2},
		{name: "an invalid run", method: "run/start", params: map[string]any{"args": []string{"--broken"}},
			code: -32602, reason: "invalid", calls: 1, inside: 2},
		{name: "a file", method: "fs/getMetadata", params: map[string]any{"path": "file:///"}, inside: 2},
		{name: "refused, a process", method: "process/start", params: process("r", ""), refuses: full,
			code: -32050, reason: "noSlot", calls: 1, inside: 2},
		{name: "refused, a run", method: "run/start", params: map[string]any{"args": []string{"true"}},
			refuses: full, code: -32050, reason: "noSlot", calls: 1, inside: 2},
		{name: "refused with a text", method: "process/start", params: process("r", ""),
			refuses: errors.New("no"), code: -32600, calls: 1, inside: 2},
	} {
		g.refuses, g.calls[session] = test.refuses, 0
		m := c.call(test.method, test.params)
		switch {
		case test.code == 0 && m.Error != nil,
			test.code != 0 && (m.Error == nil || m.Error.Code != test.code || m.Error.Data.Reason != test.reason):
			t.Errorf("%s: %+v, %s", test.name, m.Error, m.Result)
		}
		var r startedRun
		switch test.ends {
		case "":
		case "run":
			if err := json.Unmarshal(m.Result, &r); err != nil {
				t.Fatal(err)
			}
			c.over(r.RunID)
		default:
			c.ended(test.ends)
		}
		g.Lock()
		if g.calls[session] != test.calls || g.inside[session] != test.inside {
			t.Errorf("%s: %d calls, %d inside", test.name, g.calls[session], g.inside[session])
		}
		g.Unlock()
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if len(g.inside) != 1 || g.inside[session] != 0 {
		t.Errorf("%v are inside", g.inside)
	}
}
