// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/hub"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start returns a node with a slot, and a client of it.
func start(t *testing.T) (*Node, *link.Client) {
	t.Helper()
	h, err := hub.Start(context.WithoutCancel(t.Context()),
		hub.Options{Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "hub")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	var conns [2]*bus.Conn
	for i := range conns {
		if conns[i], err = bus.Connect(t.Context(), bus.Options{URL: h.URL(), Name: "test"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conns[i].Close)
	}
	n, err := Start(t.Context(), conns[0], Options{Name: "n1", Slots: 1, Server: execserver.Options{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close(context.Background()) })
	c, err := link.NewClient(conns[1], false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return n, c
}

// TestOpenRefused: links of a wrong form, and those of an epoch in which the account has lost the node, are
// refused.
func TestOpenRefused(t *testing.T) {
	n, c := start(t)
	if _, err := n.fence(link.Peer{}, 1); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		o    fleet.Opening
		good bool
	}{
		{"a fenced epoch", fleet.Opening{Session: "a", Epoch: 1}, false},
		{"the next one", fleet.Opening{Session: "b", Epoch: 2}, true},
		{"a huge epoch", fleet.Opening{Session: "c", Epoch: 1<<64 - 1}, true},
		{"a long credential", fleet.Opening{Session: "d", Epoch: 2,
			Credential: strings.Repeat("x", maxCredential+1)}, false},
	} {
		l, err := c.Open(link.Address{Scope: link.Own, Node: "n1"}, test.o)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Write([]byte(`{"id":1,"method":"initialize","params":{"clientName":"test"}}`))
		if text, err := l.Read(); (err == nil) != test.good {
			t.Errorf("%s: %q, %v", test.name, text, err)
		}
		defer l.Close()
	}
	for _, a := range n.sessions {
		if a.epoch != 2 {
			t.Errorf("a session of the epoch %d: a fence does not end it", a.epoch)
		}
	}
	if _, err := n.fence(link.Peer{}, 1<<64-1); err == nil {
		t.Error("a fence of an epoch that has not been")
	}
}

// TestDrainAwaits: a drain waits for a session that has a place and starts something soon.
func TestDrainAwaits(t *testing.T) {
	n, _ := start(t)
	if r := n.reserve(link.Peer{}, fleet.Reserve{Session: "s", Free: 1}); !r.OK {
		t.Fatal(r)
	}
	over := make(chan error, 1)
	go func() { over <- n.drain(t.Context(), link.Peer{}, fleet.Drain{DeadlineMs: maxDeadlineMs}) }()
	for n.Record().State != fleet.Draining {
		<-time.After(time.Millisecond)
	}
	leave, err := n.admit("s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.admit("t"); err == nil {
		t.Error("a second start has the same slot")
	}
	select {
	case err := <-over:
		t.Fatalf("the node has left with a process: %v", err)
	default:
	}
	leave()
	if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestReserveAgain: a session that has a slot already gets no second one, and is not refused: the answer to
// what it asked before came late.
func TestReserveAgain(t *testing.T) {
	n, _ := start(t)
	for range 3 {
		if r := n.reserve(link.Peer{}, fleet.Reserve{Session: "s", Free: 1}); !r.OK || r.Record.Free != 0 {
			t.Errorf("%+v", r)
		}
	}
	if r := n.reserve(link.Peer{}, fleet.Reserve{Session: "t"}); r.OK {
		t.Errorf("another session has the slot, too: %+v", r)
	}
	other := link.Peer{Account: "other"}
	r := n.reserve(other, fleet.Reserve{Session: "s"})
	if r.OK || n.kill(other, fleet.Kill{Session: "s"}) == nil {
		t.Errorf("another account has the slot, or freed it: %+v", r)
	}
	leave, err := n.admit("s")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if _, err := n.admit("s"); err == nil {
		t.Error("one slot is used twice")
	}
}

// TestReserveAfterLostAnswer: a session that the node has, and of which its client has not heard, can be
// placed there again; one that has a client cannot.
func TestReserveAfterLostAnswer(t *testing.T) {
	n, c := start(t)
	open := func() *link.Link {
		l, err := c.Open(link.Address{Scope: link.Own, Node: "n1"}, fleet.Opening{Session: "s", Epoch: 1})
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Write([]byte(`{"id":1,"method":"initialize","params":{"clientName":"test"}}`))
		if text, err := l.Read(); err != nil || !strings.Contains(string(text), "sessionId") {
			t.Fatalf("%s, %v", text, err)
		}
		return l
	}
	reserve := func() (got fleet.Reserved) {
		err := c.Call(t.Context(), link.Address{Scope: link.Own, Node: "n1"}, fleet.MethodReserve,
			fleet.Reserve{Session: "s", Free: 1}, &got)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	open().Cut("the answer did not come")
	if r := reserve(); !r.OK {
		t.Errorf("%+v", r)
	}
	defer open().Close()
	c.Tell(link.Address{Scope: link.Own, Node: "n1"}, fleet.MethodKill,
		fleet.Kill{Session: "s", Unused: true})
	for n.Record().Free != 1 {
		<-time.After(time.Millisecond)
	}
	if r := reserve(); r.OK {
		t.Errorf("it has a client: %+v", r)
	}
	if list := n.server.Sessions(); len(list) != 1 || !list[0].Attached {
		t.Errorf("%+v", list)
	}
}
