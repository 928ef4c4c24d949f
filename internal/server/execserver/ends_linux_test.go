// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// greeted connects a client that has runs, and returns its session.
func greeted(t *testing.T, server testServer) (*driver, string) {
	t.Helper()
	d := &driver{caller: &caller{t: t, speaker: connect(t, server)}}
	return d, d.greet(nil)
}

// states returns what the server says of its sessions, in the order of their IDs.
func states(server testServer) string {
	var all []string
	for _, s := range server.Sessions() {
		if s.Started.IsZero() || time.Since(s.Started) < 0 {
			all = append(all, "at a strange time:")
		}
		all = append(all, fmt.Sprintf("%s of %s: %d, %v", s.ID, s.Credential, s.Living, s.Attached))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// awaits waits until the server says that of its sessions.
func awaits(t *testing.T, server testServer, want string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); states(server) != want; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s; want %s", states(server), want)
		}
	}
}

// TestServeSession: a connection opens the session that its server names, unless there is one.
func TestServeSession(t *testing.T) {
	server := run(t, options()).as("x")
	c, id := meet(t, server.opening("a"), nil)
	if id != "a" {
		t.Errorf("session %s", id)
	}
	hello := func(server testServer, resume any) message {
		c := &caller{t: t, speaker: connect(t, server)}
		return c.call("initialize", map[string]any{"clientName": "test", "resumeSessionId": resume})
	}
	for _, test := range []struct {
		name   string
		server testServer
		resume any
		error  string // empty for the session a
	}{
		{"again", server.opening("a"), nil, "session a exists"},
		{"of another credential", server.as("y").opening("a"), nil, "session a exists"},
		{"resumed by another credential", server.as("y").opening("a"), "a", "unknown session id a"},
		{"resumed", server.opening("b"), "a", ""},
		{"again after all", server.opening("a"), nil, "session a exists"},
	} {
		if test.name == "resumed" {
			if err := c.close(); err != nil {
				t.Fatal(err)
			}
			awaits(t, server, "a of x: 0, false")
		}
		m := hello(test.server, test.resume)
		if test.error == "" && (m.Error != nil || !strings.Contains(string(m.Result), `"sessionId":"a"`)) ||
			test.error != "" && (m.Error == nil || m.Error.Message != test.error || m.Error.Code != -32600) {
			t.Errorf("%s: %+v, %s", test.name, m.Error, m.Result)
		}
	}
	if !server.EndSession("a") || server.EndSession("a") {
		t.Error("it does not end once")
	}
	if _, id := meet(t, server.opening("a"), nil); id != "a" {
		t.Errorf("session %s", id)
	}
}

// TestSessions: the list has what lives of each session, and a session as long as a run of it does.
func TestSessions(t *testing.T) {
	o := runOptions()
	o.Detached = -1
	server, dir := run(t, o), t.TempDir()
	a, _ := greeted(t, server.as("x").opening("a"))
	release := execserver.HoldStarts(server.Server) // of its connection
	a.post(map[string]any{"id": "p", "method": "process/start", "params": script("p", dir, "sleep 1000")})
	a.call("environment/status", nil)
	awaits(t, server, "a of x: 1, true")
	release()
	awaits(t, server, "a of x: 1, true")
	again := func() {
		t.Helper()
		c := &caller{t: t, speaker: connect(t, server.as("y").opening("a"))}
		if m := c.call("initialize", map[string]any{"clientName": "test"}); m.Error == nil ||
			m.Error.Message != "session a exists" {
			t.Errorf("%+v, %s", m.Error, m.Result)
		}
	}
	first, second := a.runs(nil, "sleep", "1000"), a.runs(nil, "sleep", "1000")
	b, _ := greeted(t, server.as("x").opening("b"))
	awaits(t, server, "a of x: 3, true; b of x: 0, true")
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	awaits(t, server, "a of x: 2, false; b of x: 0, true")
	b.result(&struct{}{}, "run/terminate", map[string]any{"runId": first})
	awaits(t, server, "a of x: 1, false; b of x: 0, true")
	again() // also without the session: its runs would be those of another one
	if !server.EndSession("a") || states(server) != "b of x: 0, true" {
		t.Error(states(server))
	}
	if res := b.over(second); res.End == "" {
		t.Errorf("%+v", res)
	}
	if server.EndSession("a") || server.EndSession("c") {
		t.Error("an unknown session has ended")
	}
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	awaits(t, server, "")
}

// TestEndSession: with a session end its processes and runs, those that are starting included, and its
// connection, and nothing starts for it afterwards. Its client hears of the ends, if it reads.
func TestEndSession(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(s testServer) bool
	}{
		{"by its ID", func(s testServer) bool { return s.EndSession("a") }},
		{"by its credential", func(s testServer) bool {
			return s.EndOf(func(credential string) bool { return credential == "x" })
		}},
		{"at once", func(s testServer) bool {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { s.EndSession("a") })
			}
			all.Wait()
			return !strings.Contains(states(s), "a of")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := &gate{calls: map[string]int{}, inside: map[string]int{}}
			o := runOptions()
			o.Admit = g.admit
			server, dir := run(t, o), t.TempDir()
			a := &driver{caller: &caller{t: t}, decides: func(*runQuestion) any { return nil }}
			a.speaker = &answering{connectHolding(t, server.as("x").opening("a"), 100), a}
			a.call("initialize", map[string]any{"clientName": "test", "extensionMethods": true, "approvals": true})
			a.post(map[string]any{"method": "initialized"})
			own, _ := greeted(t, server.as("y").opening("own"))
			a.started(script("p", dir, "trap '' TERM; echo $$; sleep 1000 & sleep 1000"))
			pid := a.first("p")
			a.runs(nil, "sleep", "1000")
			a.post(map[string]any{"id": "asks", "method": "run/start",
				"params": map[string]any{"args": []string{"--ask", "touch", "ran"}, "cwd": dir}})
			a.until(func(m *message) bool { return m.Method == "run/approve" })
			own.started(script("p", dir, "echo $$; exec sleep 1000"))
			others, run := own.first("p"), own.runs(nil, "sleep", "1000")
			g.Lock()
			if g.inside["a"] != 3 || g.inside["own"] != 2 {
				t.Errorf("%v", g.inside)
			}
			g.Unlock()
			if !test.end(server) {
				t.Error("nothing has ended")
			}
			if alive(t, pid) || !alive(t, others) || ran(dir) || g.inside["a"] != 0 || g.inside["own"] != 2 {
				t.Errorf("%v, %v, %v, %v", alive(t, pid), alive(t, others), ran(dir), g.inside)
			}
			if s := states(server); s != "own of y: 2, true" {
				t.Error(s)
			}
			a.ended("p")
			for err := error(nil); err == nil; {
				_, err = a.receive() // the connection ends
			}
			if m := own.call("run/wait", map[string]any{"runId": run, "timeoutMs": 0,
				"for": map[string]any{"exit": true}}); !strings.Contains(string(m.Result), "deadline") {
				t.Errorf("%+v, %s", m.Error, m.Result)
			}
		})
	}
}

// TestEndUnread: a session ends whose client reads nothing, and one that is ending starts nothing.
func TestEndUnread(t *testing.T) {
	o := runOptions()
	o.Drain = 100 * time.Millisecond
	server, dir := run(t, o), t.TempDir()
	c, _ := greeted(t, server.opening("a"))
	c.started(script("p", dir, "while echo 0123456789012345678901234567890123456789; do :; done"))
	c.until(func(m *message) bool { return m.Method == "process/output" })
	for i := range 200 { // they come before, meanwhile and afterwards
		c.post(map[string]any{"id": i + 1000, "method": "run/start",
			"params": map[string]any{"args": []string{"touch", "ran"}, "cwd": dir}})
	}
	if !server.EndSession("a") || states(server) != "" {
		t.Error(states(server))
	}
	if m := drive(t, server, nil).call("run/list", nil); string(m.Result) == "" ||
		strings.Contains(string(m.Result), `"running":true`) {
		t.Errorf("%+v, %s", m.Error, m.Result)
	}
}

// TestBounds: how many runs of a credential live, and which IDs they have, is up to the options.
func TestBounds(t *testing.T) {
	o := runOptions()
	o.MaxRuns, o.RunPrefix = 2, "web1-3-"
	server := run(t, o)
	d, stranger := drive(t, server, nil), drive(t, server.as("stranger"), nil)
	ids := []string{d.runs(nil, "sleep", "1000"), d.runs(nil, "sleep", "1000")}
	if slices.Sort(ids); !slices.Equal(ids, []string{"web1-3-1", "web1-3-2"}) {
		t.Errorf("%v", ids)
	}
	m := d.call("run/start", map[string]any{"args": []string{"true"}})
	if m.Error == nil || m.Error.Data.Reason != "runLimit" ||
		!strings.Contains(m.Error.Message, "limit of runs (2) reached") {
		t.Errorf("%+v", m)
	}
	if id := stranger.runs(nil, "true"); id != "web1-3-3" {
		t.Errorf("run %s", id)
	}
	d.result(&struct{}{}, "run/terminate", map[string]any{"runId": ids[0]})
	d.over(d.runs(nil, "true"))
}
