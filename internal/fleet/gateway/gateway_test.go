// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
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
	t   *testing.T
	hub *hub.Hub
}

func newSite(t *testing.T) *site {
	t.Helper()
	h, err := hub.Start(t.Context(), hub.Options{Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "hub")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return &site{t, h}
}

func (s *site) connect() *bus.Conn {
	s.t.Helper()
	c, err := bus.Connect(s.t.Context(), bus.Options{URL: s.hub.URL(), Name: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func (s *site) node(name string, slots int, labels map[string]string) *node.Node {
	s.t.Helper()
	n, err := node.Start(s.t.Context(), s.connect(), node.Options{Name: name, Slots: slots, Labels: labels,
		Server: execserver.Options{Environ: os.Environ(), Dir: s.t.TempDir()}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = n.Close(context.Background()) })
	return n
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
	t      *testing.T
	mu     sync.Mutex
	events []string
	exits  chan wire.Exited
	closed chan string
	output map[string]string
}

func (s *site) client(g *gateway.Gateway, query url.Values) *client {
	s.t.Helper()
	c := &client{t: s.t, exits: make(chan wire.Exited, 1000), closed: make(chan string, 1000),
		output: make(map[string]string)}
	var err error
	c.Client, err = wire.Connect(s.t.Context(), wire.ClientTarget{Dial: func(context.Context) (wire.Stream, error) {
		near, far := wire.Pipe()
		go func() { _ = g.Serve(far, "", query) }()
		return near, nil
	}}, wire.ClientOptions{Name: "test", Extensions: true, OnNotify: c.notify})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (c *client) notify(method string, params json.RawMessage) {
	switch method {
	case wire.MethodOutput:
		var o wire.Output
		_ = json.Unmarshal(params, &o)
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
	var e wire.Exited
	for {
		select {
		case got := <-c.exits:
			if got.ProcessID == id {
				e = got
			}
		case got := <-c.closed:
			if got == id {
				return e
			}
		case <-time.After(time.Minute):
			c.t.Fatalf("%s does not end", id)
		}
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
	for _, n := range g.Registry().Nodes() {
		fmt.Println(n.Name, n.Free, n.State)
	}
	c := s.client(g, nil)
	if err := c.start("p", "sleep", "1000"); err == nil {
		t.Error("a fifth one")
	} else {
		t.Log(err)
	}
}
