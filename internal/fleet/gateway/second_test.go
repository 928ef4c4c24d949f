// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/fleet/hub"
	"github.com/sallyport-dev/sallyport/internal/fleet/node"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// observer connects a client that watches a session.
func (s *site) observer(g *gateway.Gateway, session string) *raw {
	s.t.Helper()
	near, far := wire.Pipe()
	go func() { _ = g.Serve(far, "", nil) }()
	c := &raw{t: s.t, stream: near}
	s.t.Cleanup(func() { _ = near.Close() })
	params := map[string]any{"clientName": "observer", "extensionMethods": true, "observeSessionId": session}
	if failure := c.call("initialize", params, nil); failure != nil {
		s.t.Fatal(failure)
	}
	c.post(map[string]any{"method": "initialized"})
	return c
}

// TestObserve: who observes a session neither takes it from its client, nor gets a node for it.
func TestObserve(t *testing.T) {
	s := newSite(t)
	n, _ := s.node("n1", 4, nil)
	g := s.gateway(gateway.Options{})
	owner, hello := s.raw(g, "")
	early := s.observer(g, hello.SessionID)
	list := struct{ Processes []json.RawMessage }{}
	failure := early.call("process/list", map[string]any{}, &list)
	if failure != nil || len(list.Processes) != 0 {
		t.Errorf("before a start: %v, %v", failure, list)
	}
	start := map[string]any{"processId": "p", "argv": []string{"sleep", "1000"}, "cwd": "file:///",
		"env": map[string]string{"PATH": os.Getenv("PATH")}, "tty": false}
	if failure := early.call("process/start", start, nil); failure == nil {
		t.Error("an observer has started something")
	}
	if n.Record().Free != 4 {
		t.Error("an observer has a slot")
	}
	if failure := owner.call("process/start", start, nil); failure != nil {
		t.Fatal(failure)
	}
	late := s.observer(g, hello.SessionID)
	for _, c := range []*raw{late, owner, late} {
		failure := c.call("process/list", map[string]any{}, &list)
		if failure != nil || len(list.Processes) != 1 {
			t.Errorf("%v, %s", failure, list.Processes)
		}
	}
}

// TestReplaced: a node that was taken for dead and comes back while another one has its name ends, and that
// one is used.
func TestReplaced(t *testing.T) {
	s := newSite(t)
	p := s.partition()
	old, err := node.Start(t.Context(), s.connect(), node.Options{Name: "n1", Slots: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Close(t.Context()) })
	s.url = s.hub.URL()
	p.pause()
	s.node("n1", 4, nil)
	p.resume()
	<-old.Left()
	if err := old.Err(); !errors.Is(err, node.ErrReplaced) {
		t.Error(err)
	}
	g := s.gateway(gateway.Options{})
	for range 5 {
		c := s.client(g, nil)
		if err := c.start("p", "true"); err != nil {
			t.Fatal(err)
		}
		c.await("p")
	}
}

// TestHubAway: a start while the hub is started again waits for it.
func TestHubAway(t *testing.T) {
	store := filepath.Join(t.TempDir(), "hub")
	begin := func(listen string) *hub.Hub {
		h, err := hub.Start(t.Context(), hub.Options{Listen: listen, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	h := begin("127.0.0.1:0")
	s := &site{t, h, h.URL()}
	s.node("n1", 4, nil)
	g := s.gateway(gateway.Options{})
	c, fresh := s.client(g, nil), make(chan error, 1)
	_ = h.Close()
	started := make(chan error, 1)
	go func() { started <- c.start("p", "true") }()
	go func() {
		other, err := s.tryOver(g.Dial)
		if err == nil {
			defer other.Close()
			err = other.start("p", "true")
		}
		fresh <- err
	}()
	<-time.After(500 * time.Millisecond)
	s.hub = begin(strings.TrimPrefix(h.URL(), "nats://"))
	for _, over := range []chan error{started, fresh} {
		if err := <-over; err != nil {
			t.Error(err)
		}
	}
	c.await("p")
}

// TestSlowNode: a list has a node of which the account keeps nothing, such as a shared one, that takes its
// time.
func TestSlowNode(t *testing.T) {
	s := newSite(t)
	s.node("n1", 1, nil)
	s.late(60*time.Millisecond, "n2", nil)
	conn, err := bus.Connect(t.Context(), bus.Options{URL: s.url, Name: "test", Account: "TENANT"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 5 {
		c, err := fleet.NewControl(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if nodes := c.Nodes(); len(nodes) != 2 {
			t.Errorf("%+v", nodes)
		}
		c.Close()
	}
}
