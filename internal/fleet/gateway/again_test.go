// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/fleet/node"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// keyed starts a process that adds a line to a file, with a key.
func (c *client) keyed(id, key, file string) error {
	return c.Call(c.t.Context(), "process/start", map[string]any{"processId": id, "idempotencyKey": key,
		"argv": []string{"sh", "-c", "echo x >>" + file}, "cwd": wire.URI(os.TempDir()),
		"env": map[string]string{"PATH": os.Getenv("PATH")}, "tty": false}, nil)
}

// TestBootOutlivesLeaving: a node that has left and comes again counts on, so that a start with a key which
// the last one performed is not performed again, and IDs of runs are no others'.
func TestBootOutlivesLeaving(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "runs")
	n, _ := s.node("n1", 4, nil)
	c := s.client(s.gateway(gateway.Options{}), nil)
	if err := c.keyed("p", "once", file); err != nil {
		t.Fatal(err)
	}
	c.await("p")
	boot := n.Record().Boot
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	again, _ := s.node("n1", 4, nil)
	if got := again.Record().Boot; got <= boot {
		t.Errorf("boot %d after %d", got, boot)
	}
	late := s.client(s.gateway(gateway.Options{}), nil)
	if err := late.keyed("p", "once", file); wire.RefusalOf(err).Reason != wire.ReasonLost {
		t.Errorf("the start with the same key: %v", err)
		late.await("p")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x\n" {
		t.Errorf("it ran as %q, %v", text, err)
	}
}

// TestLeaving: a start with a key that a leaving node has performed is told as lost when the node has left,
// and what was not performed anywhere goes to another node.
func TestLeaving(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "runs")
	n, err := node.Start(t.Context(), s.connect(), node.Options{Name: "n1", Slots: 4,
		Server: execserver.Options{Environ: os.Environ(), Dir: t.TempDir(), Drain: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	c := s.client(s.gateway(gateway.Options{}), nil)
	if err := c.keyed("p", "once", file); err != nil {
		t.Fatal(err)
	}
	c.await("p")
	// A client that does not read has the node wait before it leaves.
	lazy, _ := s.raw(s.gateway(gateway.Options{}), "")
	failure := lazy.call("process/start", map[string]any{"processId": "p", "tty": false, "cwd": "file:///",
		"argv": []string{"head", "-c", "8000000", "/dev/zero"},
		"env":  map[string]string{"PATH": os.Getenv("PATH")}}, nil)
	if failure != nil {
		t.Fatal(failure)
	}
	lazy.read()
	left := make(chan error, 1)
	go func() { left <- n.Close(context.Background()) }()
	for n.Record().State == fleet.Ready {
		runtime.Gosched()
	}
	s.node("n2", 4, nil)
	g := s.gateway(gateway.Options{})
	if err := s.client(g, nil).keyed("p", "once", file); wire.RefusalOf(err).Reason != wire.ReasonLost {
		t.Errorf("the start with the same key: %v", err)
	}
	other := s.client(g, nil)
	if err := other.keyed("p", "twice", file); err != nil {
		t.Error(err)
	}
	other.await("p")
	if err := <-left; err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x\nx\n" {
		t.Errorf("it ran as %q, %v", text, err)
	}
}

// TestRunElsewhere: a request about a run is answered by its node, also for a client whose session has none
// or another one. These nodes perform no runs, and say so.
func TestRunElsewhere(t *testing.T) {
	s := newSite(t)
	s.node("n1", 4, nil)
	s.node("n2", 4, map[string]string{"n": "2"})
	g := s.gateway(gateway.Options{})
	for _, placed := range []bool{false, true} {
		other := s.client(g, map[string][]string{"label": {"n=2"}})
		if placed {
			if err := other.start("p", "true"); err != nil {
				t.Fatal(err)
			}
		}
		var failure *wire.Error
		err := other.Call(t.Context(), "run/wait", map[string]any{"runId": "n1-1-1", "waitMs": 1}, nil)
		if !errors.As(err, &failure) || failure.Code != wire.CodeNoMethod {
			t.Errorf("placed %v: %v", placed, err)
		}
	}
}
