// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/fleet/hub"
	"github.com/sallyport-dev/sallyport/internal/fleet/node"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A site is a hub with nodes and gateways in this process.
type site struct {
	t   testing.TB
	hub *hub.Hub
	url string // for the next connection
}

func newSite(t testing.TB) *site {
	t.Helper()
	h, err := hub.Start(context.WithoutCancel(t.Context()),
		hub.Options{Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "hub")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return &site{t, h, h.URL()}
}

func (s *site) connect() *bus.Conn {
	s.t.Helper()
	c, err := bus.Connect(s.t.Context(), bus.Options{URL: s.url, Name: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func (s *site) node(name string, slots int, labels map[string]string) (*node.Node, *bus.Conn) {
	s.t.Helper()
	c := s.connect()
	n, err := node.Start(s.t.Context(), c, node.Options{Name: name, Slots: slots, Labels: labels,
		Server: execserver.Options{Environ: os.Environ(), Dir: s.t.TempDir()}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil && c.For() > 0 {
			s.t.Error(err)
		}
	})
	return n, c
}

func (s *site) gateway(o gateway.Options) *gateway.Gateway {
	s.t.Helper()
	g, err := gateway.New(s.t.Context(), s.connect(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = g.Shutdown(context.Background()) })
	return g
}

// A client is one of a gateway.
type client struct {
	*wire.Client
	t      testing.TB
	mu     sync.Mutex
	ended  map[string]wire.Exited // seen by await
	gone   map[string]bool
	exits  chan wire.Exited
	closed chan string
	output map[string]string
}

func (s *site) client(g *gateway.Gateway, query url.Values) *client {
	s.t.Helper()
	return s.over(func(context.Context) (wire.Stream, error) {
		near, far := wire.Pipe()
		go func() { _ = g.Serve(far, "", query) }()
		return near, nil
	})
}

func (s *site) over(dial func(context.Context) (wire.Stream, error)) *client {
	s.t.Helper()
	c, err := s.tryOver(dial)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *site) tryOver(dial func(context.Context) (wire.Stream, error)) (*client, error) {
	c := &client{t: s.t, exits: make(chan wire.Exited, 1000), closed: make(chan string, 1000),
		output: make(map[string]string), ended: make(map[string]wire.Exited),
		gone: make(map[string]bool)}
	var err error
	c.Client, err = wire.Connect(context.Background(), wire.ClientTarget{Dial: dial},
		wire.ClientOptions{Name: "test", Extensions: true, OnNotify: c.notify})
	return c, err
}

func (c *client) notify(method string, params json.RawMessage) {
	switch method {
	case wire.MethodOutput:
		var o wire.Output
		_ = json.Unmarshal(params, &o) // the server's own
		c.mu.Lock()
		c.output[o.ProcessID] += string(o.Chunk.Chunk)
		c.mu.Unlock()
	case wire.MethodExited:
		var e wire.Exited
		_ = json.Unmarshal(params, &e)
		c.exits <- e
	case wire.MethodClosed:
		var e wire.Closed
		_ = json.Unmarshal(params, &e)
		c.closed <- e.ProcessID
	}
}

// start starts a process.
func (c *client) start(id string, argv ...string) error {
	return c.Call(c.t.Context(), "process/start", map[string]any{"processId": id, "argv": argv,
		"cwd": wire.URI(os.TempDir()), "env": map[string]string{"PATH": os.Getenv("PATH")}, "tty": false}, nil)
}

// await waits for the end of a process.
func (c *client) await(id string) wire.Exited {
	c.t.Helper()
	for !c.gone[id] {
		select {
		case got := <-c.exits:
			c.ended[got.ProcessID] = got
		case got := <-c.closed:
			c.gone[got] = true
		case <-time.After(time.Minute):
			c.t.Fatalf("%s does not end", id)
		}
	}
	for {
		select {
		case got := <-c.exits:
			c.ended[got.ProcessID] = got
			continue
		default:
		}
		return c.ended[id]
	}
}

func TestStart(t *testing.T) {
	s := newSite(t)
	s.node("n1", 2, nil)
	s.node("n2", 4, map[string]string{"zone": "b"})
	g := s.gateway(gateway.Options{})
	c := s.client(g, nil)
	if err := c.start("p", "sh", "-c", "echo hello; exit 3"); err != nil {
		t.Fatal(err)
	}
	if e := c.await("p"); e.ExitCode != 3 || c.output["p"] != "hello\n" {
		t.Errorf("%+v, %q", e, c.output["p"])
	}
}

func TestPlacement(t *testing.T) {
	s := newSite(t)
	s.node("n1", 2, nil)
	s.node("n2", 2, map[string]string{"zone": "b"})
	g := s.gateway(gateway.Options{})
	for i := range 4 {
		c := s.client(g, nil)
		if err := c.start("p", "sleep", "1000"); err != nil {
			t.Fatal(i, err)
		}
	}
	c := s.client(g, nil)
	if err := c.start("p", "sleep", "1000"); err == nil || !strings.HasPrefix(err.Error(), "no free slot") {
		t.Errorf("a fifth one: %v", err)
	}
}

// TestLost: the processes of a node that goes without a word end as lost, for clients that look and that come
// later.
func TestLost(t *testing.T) {
	s := newSite(t)
	_, conn := s.node("n1", 8, nil)
	g := s.gateway(gateway.Options{})
	c := s.client(g, nil)
	for _, id := range []string{"a", "b"} {
		if err := c.start(id, "sh", "-c", "echo hello; sleep 1000"); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	conn.Close()
	for _, id := range []string{"a", "b"} {
		if e := c.await(id); e.ExitCode != wire.LostCode || !e.Lost {
			t.Errorf("%s: %+v", id, e)
		}
	}
	t.Logf("lost after %v", time.Since(begin))
	if err := c.start("c", "true"); wire.RefusalOf(err).Reason != wire.ReasonLost {
		t.Errorf("a start in the lost session: %v", err)
	}
	id := c.Server().SessionID
	late, _ := s.raw(s.gateway(gateway.Options{}), id)
	var page wire.ReadResult
	if err := late.call("process/read", map[string]any{"processId": "a"}, &page); err != nil {
		t.Fatal(err)
	}
	if !page.Closed || !page.Lost || page.ExitCode == nil || *page.ExitCode != wire.LostCode {
		t.Errorf("%+v", page)
	}
}

// TestFenced: a node that was declared lost and comes back has ended what it had, and is used again.
func TestFenced(t *testing.T) {
	s := newSite(t)
	p := s.partition()
	n, _ := s.node("n1", 8, nil)
	s.url = s.hub.URL()
	g := s.gateway(gateway.Options{})
	c := s.client(g, nil)
	if err := c.start("a", "sleep", "1000"); err != nil {
		t.Fatal(err)
	}
	p.pause()
	c.await("a")
	if n.Record().Free != 7 {
		t.Errorf("%+v", n.Record())
	}
	p.resume()
	for {
		changed := g.Registry().Changed()
		if r, ok := g.Registry().Find("n1"); ok && r.Free == 8 && r.Epoch > 1 {
			break
		}
		<-changed
	}
	again := s.client(g, nil)
	if err := again.start("a", "true"); err != nil {
		t.Fatal(err)
	}
	again.await("a")
}
