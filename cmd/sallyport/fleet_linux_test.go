// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// patience is far longer than anything takes here whose time is not the subject.
const patience = 2 * time.Minute

// A fleetSite is a hub with nodes and gateways, each a process with a home of its own.
type fleetSite struct {
	seat
	root, store, url string
	hubFlags         []string // more flags of the hub
	hub              *fleetProcess
}

// A fleetProcess is a process of a site.
type fleetProcess struct {
	*exec.Cmd
	first string // line of its standard output
	log   *lockedBuffer
	over  chan struct{} // closed when it has ended
}

// A lockedBuffer is what a process writes to its standard error.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newFleet starts a hub. Prepare, if not nil, is called with the store before.
func newFleet(t *testing.T, prepare func(*fleetSite)) *fleetSite {
	t.Helper()
	s := &fleetSite{seat: newSeat(t)}
	s.root = filepath.Dir(s.work)
	s.store = filepath.Join(s.root, "hub")
	if prepare != nil {
		prepare(s)
	}
	s.startHub(t, "127.0.0.1:0")
	return s
}

// startHub starts the hub at an address.
func (s *fleetSite) startHub(t *testing.T, address string) {
	t.Helper()
	words := []string{"fleet", "hub", "--store", s.store, "--listen", address}
	s.hub = s.start(t, "hub", append(words, s.hubFlags...)...)
	s.url = s.hub.first
}

// at returns a command of a machine, which has a home of its own.
func (s *fleetSite) at(t *testing.T, machine string, args ...string) *exec.Cmd {
	t.Helper()
	home := filepath.Join(s.root, "machines", machine)
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := s.command(t, append([]string{"sallyport"}, args...)...)
	cmd.Env = append(cmd.Env, "HOME="+home, "XDG_STATE_HOME="+home, "XDG_CONFIG_HOME="+home, "SALLYPORT_NATS="+s.url)
	cmd.Cancel = func() error { return nil } // end does it
	return cmd
}

// start starts a process that goes on, and waits for its first line.
func (s *fleetSite) start(t *testing.T, machine string, args ...string) *fleetProcess {
	t.Helper()
	p := s.begin(t, machine, args...)
	if p.first == "" {
		<-p.over
		t.Fatalf("%q says nothing; %v; %s", args, p.ProcessState, p.log)
	}
	return p
}

// begin is start for a process that may end without a line.
func (s *fleetSite) begin(t *testing.T, machine string, args ...string) *fleetProcess {
	t.Helper()
	p := &fleetProcess{Cmd: s.at(t, machine, args...), log: new(lockedBuffer), over: make(chan struct{})}
	p.Stderr = p.log
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout = w
	err = p.Start()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // ProcessState tells it
		close(p.over)
	}()
	t.Cleanup(func() {
		p.end(t, syscall.SIGTERM)
		_ = r.Close()
		if t.Failed() {
			t.Logf("%s %q: %s", machine, args, p.log)
		}
	})
	lines := bufio.NewReader(r)
	line, _ := lines.ReadString('\n') // empty where it has ended
	p.first = strings.TrimSuffix(line, "\n")
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return p
}

// end ends a process, and waits for that. It is no error that it has ended before.
func (p *fleetProcess) end(t *testing.T, by syscall.Signal) {
	t.Helper()
	_ = p.Process.Signal(syscall.SIGCONT)
	_ = p.Process.Signal(by)
	select {
	case <-p.over:
	case <-time.After(patience):
		t.Errorf("%q does not end by %v", p.Args, by)
		_ = p.Process.Kill()
		<-p.over
	}
}

// code returns the exit code of a process that ends by itself.
func (p *fleetProcess) code(t *testing.T) int {
	t.Helper()
	select {
	case <-p.over:
	case <-time.After(patience):
		t.Fatalf("%q does not end: %s", p.Args, p.log)
	}
	return testenv.Code(p.ProcessState)
}

func (p *fleetProcess) pid() int { return p.Process.Pid }

// node starts a node with a name.
func (s *fleetSite) node(t *testing.T, name string, flags ...string) *fleetProcess {
	t.Helper()
	p := s.start(t, name, append([]string{"fleet", "node", "--name", name}, flags...)...)
	if want := "node " + name + " ready"; p.first != want {
		t.Fatalf("%q, want %q", p.first, want)
	}
	return p
}

// gateway starts a gateway.
func (s *fleetSite) gateway(t *testing.T, flags ...string) *fleetProcess {
	t.Helper()
	return s.start(t, "gateway", append([]string{"fleet", "gateway"}, flags...)...)
}

// does runs sallyport to its end.
func (s *fleetSite) does(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := s.at(t, "client", args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if exit := new(exec.ExitError); !errors.As(err, &exit) {
			t.Fatal(err)
		}
	}
	return out.String(), errs.String(), testenv.Code(cmd.ProcessState)
}

// prints runs sallyport, which must succeed, and returns what it prints.
func (s *fleetSite) prints(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := s.does(t, args...)
	if code != 0 {
		t.Fatalf("%q: exit code %d; %s%s", args, code, out, errs)
	}
	return strings.TrimSpace(out)
}

// fails runs sallyport, which must end with a code and say something.
func (s *fleetSite) fails(t *testing.T, code int, says string, args ...string) {
	t.Helper()
	out, errs, got := s.does(t, args...)
	if got != code || !strings.Contains(out+errs, says) {
		t.Errorf("%q: exit code %d, %q; want %d, %q", args, got, out+errs, code, says)
	}
}

// listed are the members of the lists of a fleet that tests look at.
type listed struct {
	Name, ID, Node, State string
	Slots, Free           int
	Labels                map[string]string
}

// lists returns what fleet nodes or fleet sessions tell.
func (s *fleetSite) lists(t *testing.T, what string, flags ...string) []listed {
	t.Helper()
	var answer struct{ Nodes, Sessions []listed }
	text := s.prints(t, append([]string{"fleet", what, "--json"}, flags...)...)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	return append(answer.Nodes, answer.Sessions...)
}

// awaits waits until something is so.
func awaits(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// awaitNode waits until a node has a state.
func (s *fleetSite) awaitNode(t *testing.T, name, state string, flags ...string) {
	t.Helper()
	awaits(t, name+" is "+state, func() bool {
		for _, n := range s.lists(t, "nodes", flags...) {
			if n.Name == name {
				return n.State == state
			}
		}
		return state == ""
	})
}

// A fleetClient is a client of a gateway, or of several.
type fleetClient struct {
	*wire.Client
	t      *testing.T
	mu     sync.Mutex
	output map[string]string
	exits  chan wire.Exited
	closed chan string
}

// connect connects to what dial returns.
func connect(t *testing.T, dial func(context.Context) (wire.Stream, error)) *fleetClient {
	t.Helper()
	c := &fleetClient{t: t, output: make(map[string]string), exits: make(chan wire.Exited, 1000),
		closed: make(chan string, 1000)}
	var err error
	c.Client, err = wire.Connect(t.Context(), wire.ClientTarget{Dial: dial}, wire.ClientOptions{Name: "test",
		Extensions: true, OnNotify: c.notify})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connectTo connects to a URL.
func connectTo(t *testing.T, url string) *fleetClient {
	t.Helper()
	return connect(t, func(ctx context.Context) (wire.Stream, error) { return wire.Dial(ctx, url, "", nil) })
}

func (c *fleetClient) notify(method string, params json.RawMessage) {
	switch method {
	case wire.MethodOutput:
		var o wire.Output
		_ = json.Unmarshal(params, &o) // the server's own
		c.mu.Lock()
		c.output[o.ProcessID] += string(o.Chunk.Chunk)
		c.mu.Unlock()
	case wire.MethodExited:
		var e wire.Exited
		_ = json.Unmarshal(params, &e) // likewise
		c.exits <- e
	case wire.MethodClosed:
		var e wire.Closed
		_ = json.Unmarshal(params, &e) // likewise
		c.closed <- e.ProcessID
	}
}

// starts starts a shell script without a sandbox. A key may be empty.
func (c *fleetClient) starts(id, key, script string) error {
	params := map[string]any{"processId": id, "argv": []string{"/bin/sh", "-c", script}, "cwd": wire.URI("/"),
		"env": map[string]string{"PATH": "/usr/bin:/bin"}, "tty": false}
	if key != "" {
		params["idempotencyKey"] = key
	}
	return c.Call(c.t.Context(), "process/start", params, nil)
}

// must is starts for a script that must start.
func (c *fleetClient) must(id, script string) {
	c.t.Helper()
	if err := c.starts(id, "", script); err != nil {
		c.t.Fatal(err)
	}
}

// ends waits for the end of a process.
func (c *fleetClient) ends(id string) wire.Exited {
	c.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var e wire.Exited
	for {
		select {
		case got := <-c.exits:
			if got.ProcessID == id {
				e = got
			}
		case got := <-c.closed:
			for len(c.exits) > 0 {
				if x := <-c.exits; x.ProcessID == id {
					e = x
				}
			}
			if got == id {
				return e
			}
		case <-timer.C:
			c.t.Fatalf("%s does not end", id)
		}
	}
}

func (c *fleetClient) said(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output[id]
}

// A fleetProxy passes connections on to an address that can change. While it is held nothing passes.
type fleetProxy struct {
	net.Listener
	mu      sync.Mutex
	change  *sync.Cond
	to      string
	held    bool // in both directions, without an end of a connection
	deaf    bool // what comes back is held
	conns   map[net.Conn]struct{}
	stopped bool
}

func newFleetProxy(t *testing.T, to string) *fleetProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &fleetProxy{Listener: l, to: to, conns: make(map[net.Conn]struct{})}
	p.change = sync.NewCond(&p.mu)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { p.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.stopped = true
		p.mu.Unlock()
		p.cut()
		work.Wait()
	})
	return p
}

// set changes what the proxy does.
func (p *fleetProxy) set(change func()) {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	p.change.Broadcast()
}

// cut ends all connections.
func (p *fleetProxy) cut() {
	p.set(func() {
		for c := range p.conns {
			_ = c.Close()
		}
	})
}

func (p *fleetProxy) pass(c net.Conn) {
	defer c.Close()
	p.mu.Lock()
	to := p.to
	p.mu.Unlock()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	p.mu.Lock()
	stopped := p.stopped
	p.conns[c], p.conns[far] = struct{}{}, struct{}{}
	p.mu.Unlock()
	if stopped {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(far, c, func() bool { return p.held }) })
	both.Go(func() { p.copy(c, far, func() bool { return p.held || p.deaf }) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	delete(p.conns, far)
}

// copy passes on in one direction, and ends both connections.
func (p *fleetProxy) copy(to, from net.Conn, held func() bool) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		for held() && !p.stopped {
			p.change.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// addressOf is HOST:PORT of a URL.
func addressOf(url string) string {
	_, address, _ := strings.Cut(url, "://")
	return strings.TrimSuffix(address, "/")
}

// running counts the processes of this machine whose arguments have a mark.
func running(t *testing.T, mark string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range files {
		if args, err := os.ReadFile(f); err == nil && strings.Contains(string(args), mark) &&
			!strings.HasPrefix(string(args), "sallyport") {
			count++
		}
	}
	return count
}

// lasts is a script that goes on for long, and is found by its mark.
func lasts(mark string) string { return fmt.Sprintf(": %s; sleep 1000; : %s", mark, mark) }
