// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestEnv: which variables a process gets.
func TestEnv(t *testing.T) {
	s := New(Options{Environ: []string{"PATH=/bin", "HOME=/root", "LESS=x", "API_TOKEN=s",
		"CODEX_ACCESS_TOKEN=s"}})
	defer func() { _ = s.Close() }()
	for _, test := range []struct {
		name string
		w    wire.Start
		want string
		err  bool
	}{
		{"no policy", wire.Start{Env: map[string]string{"B": "2", "A": "1"}}, "A=1 B=2", false},
		{"nothing", wire.Start{}, "", false},
		{"all", wire.Start{EnvPolicy: &wire.EnvPolicy{Inherit: "all"}, Env: map[string]string{"LESS": "y"}}, "HOME=/root LESS=y PATH=/bin", false},
		{"core", wire.Start{EnvPolicy: &wire.EnvPolicy{Inherit: "core"}}, "HOME=/root PATH=/bin", false},
		{"with secrets", wire.Start{EnvPolicy: &wire.EnvPolicy{Inherit: "all", IgnoreDefaultExcludes: true, Exclude: []string{"CODEX_*", "l*"}}}, "API_TOKEN=s HOME=/root PATH=/bin", false},
		{"secret by name", wire.Start{EnvPolicy: &wire.EnvPolicy{Inherit: "none"}, Env: map[string]string{"API_TOKEN": "t"}}, "API_TOKEN=t", false},
		{"bad name", wire.Start{Env: map[string]string{"A=B": "1"}}, "", true},
		{"bad name that is set", wire.Start{EnvPolicy: &wire.EnvPolicy{Inherit: "none", Set: map[string]string{"": "1"}}}, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			env, err := s.env(&test.w, nil)
			if got := strings.Join(env, " "); got != test.want || (err != nil) != test.err ||
				env == nil && err == nil {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// TestPolicy: what a process may access is what its client says.
func TestPolicy(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "ca")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(Options{Hidden: []string{"/secret"}, Kept: []string{kept}})
	defer func() { _ = s.Close() }()
	const workspace = `{"type":"managed","network":"restricted","file_system":{"type":"restricted","entries":[
		{"path":{"type":"special","value":{"kind":"root"}},"access":"read"},{"path":{"type":"special","value":{"kind":"project_roots"}},"access":"write"},
		{"path":{"type":"special","value":{"kind":"tmpdir"}},"access":"write"}]}}`
	level := func(p sandbox.Policy, name string) string { return p.LevelAt(name).String() }
	for _, test := range []struct {
		name  string
		w     *wire.Sandbox
		check func(sandbox.Policy) string
		want  string
	}{
		{"none", nil, sandbox.Policy.String, "full-access, network host"},
		{"disabled", &wire.Sandbox{Permissions: json.RawMessage(`{"type":"disabled"}`)}, sandbox.Policy.String, "full-access, network host"},
		{"external", &wire.Sandbox{Permissions: json.RawMessage(`{"type":"external","network":"restricted"}`)}, sandbox.Policy.String, "external, network none"},
		{"places", &wire.Sandbox{Permissions: json.RawMessage(workspace), WorkspaceRoots: []string{"file:///w"}, TempDirs: []string{"file:///t"}}, func(p sandbox.Policy) string {
			return strings.Join([]string{level(p, "/w/a"), level(p, "/t/a"), level(p, dir),
				level(p, "/secret"), p.Network().String()}, " ")
		}, "write write read deny none"},
		{"working directory as workspace", &wire.Sandbox{Permissions: json.RawMessage(workspace)}, func(p sandbox.Policy) string { return level(p, dir) + " " + level(p, kept) }, "write read"},
		{"directory of its own", &wire.Sandbox{Permissions: json.RawMessage(workspace), CWD: "file:///w"}, func(p sandbox.Policy) string { return level(p, "/w") + " " + level(p, dir) }, "write read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, _, failure := s.policy(nil, &config.Wish{Policy: sandbox.FullAccess()}, test.w,
				dir, nil, "linux")
			if failure != nil {
				t.Fatal(failure)
			}
			if got := test.check(p); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
	for name, w := range map[string]*wire.Sandbox{
		"unknown type":   {Permissions: json.RawMessage(`{"type":"x"}`)},
		"unknown access": {Permissions: json.RawMessage(strings.Replace(workspace, `"write"`, `"all"`, 1))},
		"foreign root":   {Permissions: json.RawMessage(workspace), WorkspaceRoots: []string{"file://other/w"}},
		"relative root":  {Permissions: json.RawMessage(workspace), WorkspaceRoots: []string{"w"}},
	} {
		if p, _, failure := s.policy(nil, &config.Wish{}, w, dir, nil, "linux"); failure == nil ||
			failure.Code != -32602 {
			t.Errorf("%s: %v, %v", name, p, failure)
		}
	}
}

// script is a Stream of messages that were written before, which ends when a test says so.
type script struct {
	in     []string
	over   chan struct{}
	closed chan struct{}
	out    []string
}

func newScript(in ...string) *script {
	return &script{in: in, over: make(chan struct{}), closed: make(chan struct{}, 10)}
}

func (s *script) Read() ([]byte, error) {
	if len(s.in) > 0 {
		text := s.in[0]
		s.in = s.in[1:]
		return []byte(text), nil
	}
	select {
	case <-s.over:
		return nil, io.EOF
	case <-s.closed:
		return nil, io.ErrClosedPipe
	}
}

func (s *script) Write(message []byte) error {
	s.out = append(s.out, string(message))
	return nil
}

func (s *script) Close() error {
	select {
	case s.closed <- struct{}{}:
	default:
	}
	return nil
}

const hello = `{"id":1,"method":"initialize","params":{"clientName":"x"}}`

// sessionOf returns the ID of the session that was made or resumed; the error text otherwise.
func sessionOf(t *testing.T, s *script) string {
	t.Helper()
	var m struct {
		Result struct{ SessionID string }
		Error  struct{ Message string }
	}
	if len(s.out) == 0 || json.Unmarshal([]byte(s.out[0]), &m) != nil {
		t.Fatalf("%q", s.out)
	}
	return m.Result.SessionID + m.Error.Message
}

// TestDetachedTime: a session without a connection can be resumed for its time, and not later.
func TestDetachedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := New(Options{})
		defer func() { _ = server.Close() }()
		speak := func(texts ...string) *script {
			s := newScript(texts...)
			close(s.over)
			if err := server.Serve(s, ""); err != nil {
				t.Error(err)
			}
			return s
		}
		id := sessionOf(t, speak(hello))
		resume := fmt.Sprintf(`{"id":1,"method":"initialize","params":{"clientName":"x","resumeSessionId":%q}}`, id)
		for range 3 {
			<-time.After(defaultDetached - time.Second)
			if got := sessionOf(t, speak(resume)); got != id {
				t.Errorf("%q, want %q", got, id)
			}
		}
		<-time.After(defaultDetached + time.Second)
		if got := sessionOf(t, speak(resume)); got != "unknown session id "+id {
			t.Errorf("%q", got)
		}
	})
}

// TestManyDetached: sessions without a connection are bounded, the oldest go first, and a
// client cannot end the session of a connection that way.
func TestManyDetached(t *testing.T) {
	for _, most := range []int{0, 7} {
		manyDetached(t, most, cmp.Or(most, 256))
	}
}

// TestEndedIsLeft: a connection that waits for the one that has a session hears when that has left, also when
// the session ends meanwhile.
func TestEndedIsLeft(t *testing.T) {
	server := New(Options{})
	defer func() { _ = server.Close() }()
	first, second := newConnection(server, newScript(), ""), newConnection(server, newScript(), "")
	defer first.finish()
	defer second.finish()
	ses, failure := server.open(first)
	if failure != nil {
		t.Fatal(failure)
	}
	other, left := ses.attach(second)
	server.mu.Lock()
	server.unlist(ses)
	server.mu.Unlock()
	if server.detached(ses); other != first {
		t.Error("the session was not taken")
	}
	<-left
	if _, failure := server.resume(second, ses.id, true); failure == nil {
		t.Error("it is resumed")
	}
	server.retire(ses)
}

func manyDetached(t *testing.T, option, most int) {
	synctest.Test(t, func(t *testing.T) {
		server := New(Options{MaxDetached: option})
		defer func() { _ = server.Close() }()
		kept := newScript(hello)
		done := make(chan error, 1)
		go func() { done <- server.Serve(kept, "") }()
		synctest.Wait()
		var ids []string
		for range most + 10 {
			s := newScript(hello)
			close(s.over)
			if err := server.Serve(s, ""); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, sessionOf(t, s))
			<-time.After(time.Millisecond)
		}
		server.mu.Lock()
		known := func(id string) bool { return server.sessions[id] != nil }
		if len(server.sessions) != most+1 || slices.ContainsFunc(ids[:10], known) || !known(ids[10]) ||
			!known(sessionOf(t, kept)) {
			t.Errorf("%d sessions", len(server.sessions))
		}
		server.mu.Unlock()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

// TestEventOrder: events that several goroutines tell at once are sent in the order of their
// numbers. The wall is process.order.
func TestEventOrder(t *testing.T) {
	server := New(Options{})
	defer func() { _ = server.Close() }()
	s := newScript()
	c := newConnection(server, s, "")
	ses, failure := server.open(c)
	if failure != nil {
		t.Fatal(failure)
	}
	ses.follow(c)
	p := newProcess(ses, &wire.Start{ProcessID: "p"})
	close(p.started)
	p.stream = executor.Stream.String
	const tellers, events = 8, 500
	var work sync.WaitGroup
	for range tellers {
		work.Go(func() {
			for range events {
				p.onOutput(executor.Stdout, []byte("x"))
			}
		})
	}
	work.Wait()
	c.conn.Finish()
	if len(s.out) != tellers*events {
		t.Fatalf("%d events", len(s.out))
	}
	for i, text := range s.out {
		var m struct{ Params wire.Output }
		if err := json.Unmarshal([]byte(text), &m); err != nil || m.Params.Seq != uint64(i+1) {
			t.Fatalf("event %d: %s, %v", i+1, text, err)
		}
	}
	c.finish()
}

// TestClosedBounds: what a session keeps of processes that have ended is bounded, by number and
// by output, and goes after a time while a client could have read it.
func TestClosedBounds(t *testing.T) {
	for _, test := range []struct {
		name             string
		processes, bytes int // of each
		kept             int
	}{
		{"few", 10, maxKept, 10},
		{"many", maxClosed + 10, 1, maxClosed},
		{"large", 100, maxKept, maxClosedBytes / maxKept},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := New(Options{})
				defer func() { _ = server.Close() }()
				c := newConnection(server, newScript(), "")
				ses, _ := server.open(c)
				for i := range test.processes {
					p, failure := ses.reserve(&wire.Start{ProcessID: fmt.Sprint(i)})
					if failure != nil {
						t.Fatal(failure)
					}
					p.place.End(test.bytes)
				}
				check := func(when string, want int) {
					t.Helper()
					if taken, live, ended := ses.processes.Count(); taken+live != 0 || ended != want {
						t.Errorf("%s, %d are kept, %d live, want %d", when, ended, taken+live, want)
					}
				}
				check("at once", test.kept)
				if ses.find(fmt.Sprint(test.processes-1)) == nil {
					t.Error("the last one is not kept")
				}
				server.detached(ses)
				<-time.After(closedTime + time.Second)
				check("without a connection", test.kept)
				if _, failure := server.resume(c, ses.id, false); failure != nil {
					t.Fatal(failure)
				}
				<-time.After(closedTime + time.Second)
				check("after the time", 0)
				c.finish()
			})
		})
	}
}

// TestSessionLimit: 256 processes of a session run at once.
func TestSessionLimit(t *testing.T) {
	server := New(Options{})
	defer func() { _ = server.Close() }()
	c := newConnection(server, newScript(), "")
	ses, _ := server.open(c)
	reserve := func(id string) *process {
		p, failure := ses.reserve(&wire.Start{ProcessID: id})
		if (failure != nil) != (p == nil) || failure != nil &&
			!strings.HasPrefix(failure.Message, "process limit (256) reached") {
			t.Fatalf("%s: %v", id, failure)
		}
		return p
	}
	var all []*process
	for i := range 256 {
		all = append(all, reserve(fmt.Sprint(i)))
	}
	if reserve("more") != nil {
		t.Error("one more runs")
	}
	all[7].place.End(0)
	all[7] = reserve("more")
	for _, p := range all {
		if p == nil {
			t.Fatal("one does not run")
		}
		p.place.End(0)
	}
	c.finish()
}

// TestRequestLimit: 1024 requests of a connection wait at once.
func TestRequestLimit(t *testing.T) {
	server := New(Options{})
	defer func() { _ = server.Close() }()
	s := newScript()
	c := newConnection(server, s, "")
	for i := range 1025 {
		if admitted := c.admit(wire.Malformed()); admitted != (i < 1024) {
			t.Errorf("request %d is admitted: %v", i+1, admitted)
		}
	}
	c.reads.Add(-1)
	if !c.admit(wire.Malformed()) {
		t.Error("no other one is admitted when one has its answer")
	}
	c.conn.Finish()
	c.finish()
	if len(s.out) != 1 || !strings.Contains(s.out[0], "limit of waiting requests (1024) reached") {
		t.Errorf("%q", s.out)
	}
}

// TestObservers: a session is observed by connections of its own credential, with methods that change
// nothing and read no files.
func TestObservers(t *testing.T) {
	server := New(Options{})
	defer func() { _ = server.Close() }()
	owner := newConnection(server, newScript(), "alice")
	ses, _ := server.open(owner)
	for credential, want := range map[string]bool{"alice": true, "mallory": false, "": false} {
		c := newConnection(server, newScript(), credential)
		if got, failure := server.observe(c, ses.id); (got == ses) != want || (failure == nil) != want {
			t.Errorf("%q: %v, %v", credential, got, failure)
		}
		c.finish()
	}
	owner.finish()
	for name := range observing {
		switch name {
		case "initialize", "environment/info", "environment/status", "process/list", "process/read":
		default:
			t.Errorf("an observer may call %s", name)
		}
	}
}

// TestDetachedGroups: many sessions of one group that wait for their clients do not displace that of another
// one.
func TestDetachedGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := New(Options{MaxDetached: 4, Group: func(credential string) string { return credential[:1] }})
		defer func() { _ = server.Close() }()
		var ids []string
		for _, credential := range []string{"a", "b1", "b2", "b3", "b4", "b5", "b6"} {
			s := newScript(hello)
			close(s.over)
			if err := server.Serve(s, credential); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, sessionOf(t, s))
			<-time.After(time.Millisecond)
		}
		server.mu.Lock()
		defer server.mu.Unlock()
		if server.sessions[ids[0]] == nil || server.sessions[ids[6]] == nil || len(server.sessions) != 4 {
			t.Errorf("%d sessions; that of the other group is there: %v", len(server.sessions),
				server.sessions[ids[0]] != nil)
		}
	})
}
