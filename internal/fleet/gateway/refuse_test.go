// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
)

// fake begins a node whose links open serves, and which has a slot for everybody. It lives until the test
// ends.
func (s *site) fake(name string, open func(*link.Link)) { s.late(0, name, open) }

// late is fake for one whose answers take a time.
func (s *site) late(by time.Duration, name string, open func(*link.Link)) {
	s.t.Helper()
	conn := s.connect()
	of := fleet.Record{Name: name, State: fleet.Ready, Slots: 9, Free: 9, Boot: 1, Epoch: 1, Instance: "x",
		Info: json.RawMessage(`{}`)}
	n, err := link.NewNode(conn, link.Own, name, link.Handler{
		Open: func(_ link.Peer, _ json.RawMessage, l *link.Link) { open(l) },
		Call: func(_ context.Context, _ link.Peer, method string, _ json.RawMessage) (any, error) {
			<-time.After(by)
			switch method {
			case fleet.MethodRecord:
				return of, nil
			case fleet.MethodReserve:
				return fleet.Reserved{OK: true, Record: of}, nil
			}
			return nil, errors.New("no")
		}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(n.Close)
	end := make(chan struct{})
	s.t.Cleanup(func() { close(end) })
	go func() {
		for tick := time.Tick(fleet.LifeInterval); ; {
			_ = conn.Publish(link.Own.Life(name), of.Life())
			select {
			case <-tick:
			case <-end:
				return
			}
		}
	}()
}

// TestNodeRefuses: each start at a node that takes no session is answered, the second one as well.
func TestNodeRefuses(t *testing.T) {
	s := newSite(t)
	s.fake("n1", func(l *link.Link) { l.Cut("no") })
	c, _ := s.raw(s.gateway(gateway.Options{}), "")
	for range 2 {
		failure := c.call("process/start", map[string]any{"processId": "p", "argv": []string{"true"}}, nil)
		if failure == nil {
			t.Error("it was started")
		}
	}
}

// TestListRefused: a list is an error where a node that is alive does not say what it has.
func TestListRefused(t *testing.T) {
	s := newSite(t)
	s.node("n1", 1, nil)
	g := s.gateway(gateway.Options{})
	c, _ := s.raw(g, "")
	if failure := c.call("run/list", map[string]any{}, nil); failure != nil {
		t.Errorf("of a node that performs no runs: %v", failure)
	}
	s.fake("n2", func(l *link.Link) { l.Cut("no") })
	for _, ok := g.Registry().Find("n2"); !ok; _, ok = g.Registry().Find("n2") {
		<-g.Registry().Changed()
	}
	for _, method := range []string{"run/list", "question/list", "stage/list", "sandbox/list"} {
		failure := c.call(method, map[string]any{}, nil)
		if failure == nil || !strings.Contains(failure.Message, "n2") {
			t.Errorf("%s: %v", method, failure)
		}
	}
}
