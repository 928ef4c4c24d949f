// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// adds makes credentials by fleet add-tenant or add-node, and returns the file.
func (s *fleetSite) adds(t *testing.T, what, name string, flags ...string) string {
	t.Helper()
	return s.prints(t, append([]string{"fleet", "add-" + what, name, "--store", s.store}, flags...)...)
}

// TestFleetTenants: a tenant neither sees nor reaches what another one has. A node of all serves both, and
// runs nothing without a sandbox.
func TestFleetTenants(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	creds := make(map[string]string)
	s := newFleet(t, func(s *fleetSite) {
		for _, name := range []string{"x", "y"} {
			creds[name] = s.adds(t, "tenant", name)
		}
		creds["nx"] = s.adds(t, "node", "nx", "--tenant", "x")
		creds["all"] = s.adds(t, "node", "all")
	})
	s.fails(t, 125, "credentials", "fleet", "nodes")
	s.start(t, "nx", "fleet", "node", "--creds", creds["nx"], "--label", "name=nx")
	s.start(t, "all", "fleet", "node", "--creds", creds["all"], "--label", "name=all")
	for tenant, want := range map[string]string{"x": "all nx", "y": "all"} {
		var names []string
		for _, n := range s.lists(t, "nodes", "--creds", creds[tenant]) {
			names = append(names, n.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s sees %q, want %q", tenant, got, want)
		}
	}
	id := s.prints(t, "run", "--remote", s.url+"?label=name=nx", "--creds", creds["x"], "--detach", "--", "sleep", "1000")
	for _, verb := range []string{"logs", "kill", "wait", "rm", "attach"} {
		s.fails(t, 125, "unknown session", verb, "--remote", s.url, "--creds", creds["y"], id)
	}
	s.fails(t, 125, "no node", "run", "--remote", s.url+"?label=name=nx", "--creds", creds["y"], "--", "true")
	s.fails(t, 125, "no node", "fleet", "drain", "nx", "--creds", creds["y"])
	s.prints(t, "kill", "--remote", s.url, "--creds", creds["x"], id)
}

// TestFleetSharedNode: see TestFleetTenants.
func TestFleetSharedNode(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	creds := make(map[string]string)
	s := newFleet(t, func(s *fleetSite) {
		creds["x"], creds["y"] = s.adds(t, "tenant", "x"), s.adds(t, "tenant", "y")
		creds["all"] = s.adds(t, "node", "all")
	})
	s.start(t, "all", "fleet", "node", "--creds", creds["all"])
	id := s.prints(t, "run", "--remote", s.url, "--creds", creds["x"], "--detach", "--", "sh", "-c",
		"echo secret; sleep 1000; : x")
	if out := s.prints(t, "run", "--remote", s.url, "--creds", creds["y"], "--", "echo", "y"); out != "y" {
		t.Errorf("%q", out)
	}
	if out := s.prints(t, "ps", "--remote", s.url, "--creds", creds["y"]); strings.Contains(out, id) {
		t.Errorf("y sees %s", out)
	}
	for _, verb := range []string{"logs", "kill", "wait", "rm", "attach"} {
		s.fails(t, 125, "unknown session", verb, "--remote", s.url, "--creds", creds["y"], id)
	}
	for _, other := range s.lists(t, "sessions", "--creds", creds["x"]) {
		for _, own := range s.lists(t, "sessions", "--creds", creds["y"]) {
			if own.ID == other.ID {
				t.Errorf("y sees the session %s", own.ID)
			}
		}
		s.fails(t, 125, "no session", "fleet", "kill", "--creds", creds["y"], other.ID)
	}
	s.fails(t, 125, "all tenants", "fleet", "drain", "--creds", creds["y"], "all")
	if out := s.prints(t, "logs", "--remote", s.url, "--creds", creds["x"], id); out != "secret" {
		t.Errorf("%q", out)
	}
	g := s.gateway(t, "--creds", creds["y"])
	c := connectTo(t, g.first)
	if err := c.starts("p", "", "true"); err == nil {
		t.Error("a process without a sandbox")
	}
	err := c.Call(t.Context(), "fs/writeFile", map[string]any{"path": wire.URI(s.root + "/made"), "dataBase64": ""}, nil)
	if _, made := os.Stat(s.root + "/made"); err == nil || made == nil {
		t.Errorf("a file without a sandbox: %v", err)
	}
	if code := s.code(t, "run", "--remote", s.url, "--creds", creds["y"], "-s", "full-access", "--", "true"); code == 0 {
		t.Error("a run without a sandbox")
	}
}

// TestFleetCredentials: credentials that everybody can read are refused; what was removed is cut at once; a
// second node of a living name ends.
func TestFleetCredentials(t *testing.T) {
	t.Parallel()
	creds := make(map[string]string)
	s := newFleet(t, func(s *fleetSite) {
		creds["x"] = s.adds(t, "tenant", "x")
		creds["n"], creds["m"] = s.adds(t, "node", "n", "--tenant", "x"), s.adds(t, "node", "m", "--tenant", "x")
	})
	n := s.start(t, "n", "fleet", "node", "--creds", creds["n"])
	if want := "node n ready"; n.first != want {
		t.Errorf("%q, want %q", n.first, want)
	}
	second := s.begin(t, "n2", "fleet", "node", "--creds", creds["n"])
	if code := second.code(t); code != 125 || !strings.Contains(second.log.String(), "alive") {
		t.Errorf("exit code %d, %s", code, second.log)
	}
	s.fails(t, 125, "--name", "fleet", "node", "--creds", creds["n"], "--name", "other")
	if err := os.Chmod(creds["m"], 0o644); err != nil {
		t.Fatal(err)
	}
	s.fails(t, 125, "chmod", "fleet", "node", "--creds", creds["m"])
	g := s.gateway(t, "--creds", creds["x"])
	c := connectTo(t, g.first)
	mark := fmt.Sprintf("revoked-%d", os.Getpid())
	c.must("p", lasts(mark))
	s.prints(t, "fleet", "remove-node", "n", "--store", s.store)
	if code := n.code(t); code != 125 || !strings.Contains(n.log.String(), "refuses these credentials") {
		t.Errorf("exit code %d, %s", code, n.log)
	}
	if e := c.ends("p"); !e.Lost {
		t.Errorf("%+v", e)
	}
	awaits(t, "nothing runs", func() bool { return running(t, mark) == 0 })
	s.prints(t, "fleet", "remove-tenant", "x", "--store", s.store)
	if code := g.code(t); code != 125 {
		t.Errorf("the gateway: exit code %d, %s", code, g.log)
	}
	s.fails(t, 125, "credentials", "fleet", "nodes", "--creds", creds["n"])
}

// TestFleetApprovals: a question is asked where the run was started; without a person there it is denied.
func TestFleetApprovals(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	s := newFleet(t, nil)
	s.node(t, "a")
	words := []string{"run", "--remote", s.url, "-C", s.work, "-t=false", "-a", "untrusted", "--", "cp", "/dev/null"}
	for _, test := range []struct {
		answer string
		code   int
	}{{"y\r", 0}, {"n\r", 123}} {
		x := testenv.StartTerminal(t, s.at(t, "client", append(words, "copy"+test.answer[:1])...), 80, 24)
		x.Expect("may this command run")
		x.Expect("deny .*> $")
		x.Send(test.answer)
		if code := x.Wait(); code != test.code {
			t.Errorf("%q: exit code %d, want %d", test.answer, code, test.code)
		}
	}
	if code := s.code(t, append(words, "copied")...); code != 123 {
		t.Errorf("without a person: exit code %d", code)
	}
	for name, want := range map[string]bool{"copyy": true, "copyn": false, "copied": false} {
		if _, err := os.Stat(s.work + "/" + name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rss is the memory of a process, in bytes.
func rss(t *testing.T, pid int) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			n, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// A stuckStream is a connection that is not read any more once it is stuck.
type stuckStream struct {
	wire.Stream
	stuck chan struct{}
	over  chan struct{}
}

func (s *stuckStream) Read() ([]byte, error) {
	select {
	case <-s.stuck:
		<-s.over
	default:
	}
	return s.Stream.Read()
}

// TestFleetBackpressure: clients that do not read hold up no other client, and take no memory of the gateway
// beyond a bound.
func TestFleetBackpressure(t *testing.T) {
	t.Parallel()
	s := newFleet(t, nil)
	s.node(t, "a", "--slots", "32")
	g := s.gateway(t)
	quick := connectTo(t, g.first)
	quick.must("first", "echo first")
	quick.ends("first")
	before := rss(t, g.pid())
	const slow = 8
	over := make(chan struct{})
	defer close(over)
	for range slow {
		stuck := make(chan struct{})
		c := connect(t, func(ctx context.Context) (wire.Stream, error) {
			w, err := wire.Dial(ctx, g.first, "", nil)
			if err != nil {
				return nil, err
			}
			return &stuckStream{w, stuck, over}, nil
		})
		c.must("flood", "while :; do echo 0123456789012345678901234567890123456789012345678901234567890123456789; done")
		close(stuck)
	}
	<-time.After(3 * time.Second) // everything that has room for bytes is full
	for i := range 20 {
		id := fmt.Sprint("quick", i)
		quick.must(id, "echo "+id)
		if e := quick.ends(id); e.ExitCode != 0 || quick.said(id) != id+"\n" {
			t.Errorf("%+v, %q", e, quick.said(id))
		}
	}
	const perSession, rest = 4 << 20, 96 << 20 // in rest is garbage
	if grown := rss(t, g.pid()) - before; grown > slow*perSession+rest {
		t.Errorf("the gateway has grown by %d MiB", grown>>20)
	}
}

// TestFleetManyClients: a thousand clients that connect at once are all served.
func TestFleetManyClients(t *testing.T) {
	testenv.Long(t)
	s := newFleet(t, nil)
	s.node(t, "a", "--slots", "2000")
	s.node(t, "b", "--slots", "2000")
	g := s.gateway(t)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 1500 {
		t.Logf("%d descriptors: fewer clients", limit.Cur)
	}
	clients := min(1000, int(limit.Cur)-200) //nolint:gosec // a small number
	var work sync.WaitGroup
	for i := range clients {
		work.Go(func() {
			c, err := wire.Connect(t.Context(), wire.ClientTarget{URL: g.first}, wire.ClientOptions{Name: "test",
				Extensions: true})
			if err != nil {
				t.Errorf("client %d: %v", i, err)
				return
			}
			defer c.Close()
			if err := (&fleetClient{Client: c, t: t}).starts("p", "", "true"); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	work.Wait()
}

// TestPeerFleet: the real Codex client runs its commands through a gateway on some node, unchanged.
func TestPeerFleet(t *testing.T) {
	exec := func(cmd string) modelStep {
		return codexCall("exec_command", map[string]any{"cmd": cmd, "yield_time_ms": 5000})
	}
	c := newCodex(t, []modelStep{exec("echo hello; pwd; exit 7"), exec("echo $SALLYPORT_NATS; cat made || echo x >made"),
		exec("cat made; echo y >../outside || echo denied")})
	c.settings(t, "[features]\nunified_exec = true\n")
	s := newFleet(t, nil)
	s.node(t, "a")
	s.node(t, "b")
	g := s.gateway(t)
	cmd := c.command(t, c.codex, "exec", "--skip-git-repo-check", "-s", "workspace-write", "go on")
	cmd.Env = append(cmd.Env, "CODEX_EXEC_SERVER_URL="+g.first)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said := c.model.Said()
	for i, want := range []string{"hello", "nats://", "denied"} {
		if i >= len(said) || !strings.Contains(said[i], want) {
			t.Errorf("call %d: no %q in %q", i, want, said)
		}
	}
	if len(s.lists(t, "sessions")) == 0 {
		t.Error("no node had a session")
	}
}

// asked is what a client of a gateway is told of questions.
type asked struct {
	Questions []struct {
		RunID, Digest string
		Request       struct{ ID string }
	}
	Approved []struct{ ID string }
}

// asks returns the questions that a client sees.
func (c *fleetClient) asks() (list asked) {
	c.t.Helper()
	if err := c.Call(c.t.Context(), "question/list", nil, &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

// TestFleetApprovalsOfTenants: a tenant neither sees, answers nor revokes the approvals of another one
// through a gateway of its own, on a shared node as little as on one of the other's. A client of the same
// tenant does.
func TestFleetApprovalsOfTenants(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	creds := make(map[string]string)
	s := newFleet(t, func(s *fleetSite) {
		for _, name := range []string{"x", "y"} {
			creds[name] = s.adds(t, "tenant", name)
			creds["n"+name] = s.adds(t, "node", "n"+name, "--tenant", name)
		}
		creds["all"] = s.adds(t, "node", "all")
	})
	for _, name := range []string{"nx", "ny", "all"} {
		s.start(t, name, "fleet", "node", "--creds", creds[name], "--label", "name="+name)
	}
	gx, gy := s.gateway(t, "--creds", creds["x"]), s.gateway(t, "--creds", creds["y"])
	for _, node := range []string{"all", "nx"} {
		t.Run(node, func(t *testing.T) {
			made := filepath.Join(s.work, "made-"+node)
			run := testenv.StartTerminal(t, s.at(t, "client", "run", "--remote", gx.first+"?label=name="+node, "-C",
				s.work, "-t=false", "-a", "untrusted", "--", "sh", "-c", "touch "+made+"; echo done; sleep 1000"),
				80, 24)
			run.Expect("deny .*> $")
			x, y := connectTo(t, gx.first), connectTo(t, gy.first)
			open := x.asks().Questions
			if len(open) != 1 {
				t.Fatalf("the tenant sees %+v", open)
			}
			q := open[0]
			answer := map[string]any{"id": q.Request.ID, "digest": q.Digest,
				"decision": "approved_for_session"}
			forget := map[string]any{"id": q.Request.ID}
			y.unknowing("question/answer", answer)
			y.unknowing("question/forget", forget)
			if _, err := os.Stat(made); err == nil || len(x.asks().Questions) != 1 {
				t.Errorf("another tenant has answered: %v", err)
			}
			if err := x.Call(t.Context(), "question/answer", answer, nil); err != nil {
				t.Fatal(err)
			}
			run.Expect("done")
			y.unknowing("question/forget", forget)
			if approved := x.asks().Approved; len(approved) != 1 || approved[0].ID != q.Request.ID {
				t.Errorf("%+v", approved)
			}
			if err := x.Call(t.Context(), "question/forget", forget, nil); err != nil {
				t.Error(err)
			}
			s.prints(t, "kill", "--remote", gx.first, q.RunID)
			run.Wait()
		})
	}
}

// unknowing makes a request about a question, which the server must not know, nor list any before.
func (c *fleetClient) unknowing(method string, params map[string]any) {
	c.t.Helper()
	if list := c.asks(); len(list.Questions)+len(list.Approved) != 0 {
		c.t.Errorf("another tenant sees %+v", list)
	}
	err := c.Call(c.t.Context(), method, params, nil)
	if reason := wire.RefusalOf(err).Reason; reason != "unknownQuestion" {
		c.t.Errorf("%s of another tenant: %v (%s)", method, err, reason)
	}
}
