// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/hub"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newHub returns what connects to a hub.
func newHub(t *testing.T) (connect func() *bus.Conn) {
	t.Helper()
	h, err := hub.Start(context.WithoutCancel(t.Context()),
		hub.Options{Listen: "127.0.0.1:0", Store: filepath.Join(t.TempDir(), "hub")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return func() *bus.Conn {
		c, err := bus.Connect(t.Context(), bus.Options{URL: h.URL(), Name: "test"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
}

func newRegistry(t *testing.T, conn *bus.Conn) *Registry {
	t.Helper()
	client, err := link.NewClient(conn, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	r, err := NewRegistry(t.Context(), conn, client, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// says tells the registry a record of a node, as if it was heard.
func (r *Registry) says(of Record) { r.hear(of.Address().Scope.Life(of.Name), of.Life()) }

// TestWatcherStopped: a watcher that did not run for a while, such as one that was stopped, declares no node
// lost for what it has not heard in that time.
func TestWatcherStopped(t *testing.T) {
	conn := newHub(t)()
	r := newRegistry(t, conn)
	r.Close() // the test looks
	for conn.For() <= again {
		<-time.After(again - conn.For() + time.Millisecond)
	}
	for _, test := range []struct {
		name            string
		since, answered time.Duration
		err             error
		dead            int
	}{
		{"all the time", watchTime, 0, nil, 1},
		{"stopped", 2 * Lease, 0, nil, 0},
		{"a slow hub", watchTime, Lease, nil, 0},
		{"no hub", watchTime, 0, errors.New("cut"), 0},
	} {
		r.nodes = map[string]*entry{"n": {Record: Record{Name: "n", State: Ready, Boot: 1, Epoch: 1},
			heard: time.Now().Add(-2 * Lease)}}
		r.steady = time.Now().Add(-time.Hour)
		if dead := r.look(test.since, test.answered, test.err); len(dead) != test.dead {
			t.Errorf("%s: %v", test.name, dead)
		}
		if dead := r.look(watchTime, 0, nil); len(dead) != test.dead {
			t.Errorf("%s, and once more: %v", test.name, dead)
		}
	}
}

// TestHostileNode: what a node of a tenant says and writes does not count for the others.
func TestHostileNode(t *testing.T) {
	connect := newHub(t)
	conn := connect()
	kept, err := conn.Bucket(t.Context(), "nodes", 0)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(Kept{Boot: 1 << 60, Lost: 1 << 60, Record: Record{Name: "good", Boot: 1 << 60, Epoch: 1 << 60}})
	if err := kept.Put(t.Context(), "bad", text); err != nil {
		t.Fatal(err)
	}
	answer := func(_ context.Context, _ link.Peer, method string, _ json.RawMessage) (any, error) {
		if method == MethodReserve {
			return Reserved{OK: true, Record: Record{Name: "good", State: Draining, Boot: 1, Epoch: 1 << 60}}, nil
		}
		return nil, errors.New("no")
	}
	bad, err := link.NewNode(connect(), link.Own, "bad", link.Handler{Call: answer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bad.Close)
	r := newRegistry(t, conn)
	r.says(Record{Name: "good", State: Ready, Boot: 1, Epoch: 1, Slots: 1})
	r.says(Record{Name: "bad", State: Ready, Boot: 1, Epoch: 1, Slots: 9, Free: 9})
	if got, err := r.Place(t.Context(), "session", Need{}, 0); err == nil {
		t.Errorf("placed on %+v", got)
	}
	if got, ok := r.Find("good"); !ok || got.State != Ready {
		t.Errorf("the good node is %+v, %v", got, ok)
	}
}

// TestLateRecord: an answer that comes after what the node has said since ends no link and changes nothing.
func TestLateRecord(t *testing.T) {
	r := newRegistry(t, newHub(t)())
	of := Record{Name: "n", State: Ready, Boot: 1, Epoch: 1, Cuts: 2, Free: 1}
	r.says(of)
	late := of
	late.Cuts, late.Free = 1, 0
	r.says(late)
	if got, ok := r.Find("n"); !ok || got.Cuts != 2 || got.Free != 1 {
		t.Errorf("%+v", got)
	}
}

// TestLossNotWritten: where the hub does not take that a node is lost, as with a full disk, the links to the
// node end nevertheless: who waits asks again.
func TestLossNotWritten(t *testing.T) {
	connect := newHub(t)
	r := newRegistry(t, connect())
	r.Close() // the test declares
	away := connect()
	var err error
	if r.kept, err = away.Bucket(t.Context(), "nodes", 0); err != nil {
		t.Fatal(err)
	}
	away.Close()
	r.life = t.Context()
	of := Record{Name: "n1", State: Ready, Boot: 1, Epoch: 1}
	r.says(of)
	l, err := r.client.Open(of.Address(), Opening{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	r.declare(&entry{Record: of})
	if _, err := l.Read(); err == nil || errors.As(err, new(*executor.LostError)) {
		t.Errorf("%v, want that the node was cut", err)
	}
	if lost, _ := r.IsLost("n1", 1, 1); lost {
		t.Error("it is lost, and the hub does not know")
	}
}
