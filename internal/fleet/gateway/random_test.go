// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/fleet/hub"
	"github.com/sallyport-dev/sallyport/internal/fleet/node"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A world is a fleet of two tenants to which things happen at random.
type world struct {
	t       *testing.T
	store   string
	log     string // what commands write: +NODE KEY when they begin, -NODE KEY before they end
	listen  string
	creds   map[string]string
	life    context.Context
	mu      sync.Mutex
	hub     *hub.Hub
	gates   map[string][]*gate
	nodes   map[string]*member
	ends    map[string]string // of each key: "exit N" or "lost", as the client was told
	unknown int
}

type gate struct {
	*gateway.Gateway
	conn *bus.Conn
}

type member struct {
	*node.Node
	conn *bus.Conn
}

// slotsOfNode is how many slots each node has.
const slotsOfNode = 3

// TestAtRandom: commands of two tenants run while nodes, gateways and the hub die and come back, and nodes
// are cut off. No start is performed twice, no node runs more than it has slots for, no tenant's command runs
// on a node of the other one, and of every start the client hears one end: its own, or that it was lost.
func TestAtRandom(t *testing.T) {
	testenv.NeedUserNS(t)
	w := newWorld(t)
	var stop context.CancelFunc
	w.life, stop = context.WithCancel(context.Background())
	t.Cleanup(stop)
	var clients, chaos sync.WaitGroup
	for i := range 8 {
		clients.Go(func() { w.client([]string{"a", "b"}[i%2], i) })
	}
	length := time.Duration(testenv.Rounds(8, 300)) * time.Second
	over := time.After(length)
	chaos.Go(func() {
		for w.life.Err() == nil {
			w.happen()
			select {
			case <-time.After(time.Duration(200+rand.IntN(1500)) * time.Millisecond):
			case <-w.life.Done():
			}
		}
	})
	<-over
	stop()
	chaos.Wait()
	clients.Wait()
	w.check()
	w.close()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, store: filepath.Join(dir, "hub"), log: filepath.Join(t.TempDir(), "log"),
		creds: make(map[string]string), gates: make(map[string][]*gate), nodes: make(map[string]*member),
		ends: make(map[string]string)}
	ctx := context.WithoutCancel(t.Context())
	var err error
	for _, tenant := range []string{"a", "b"} {
		if w.creds[tenant], err = hub.AddTenant(ctx, w.store, tenant); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			name := fmt.Sprintf("%s%d", tenant, i)
			if w.creds[name], err = hub.AddNode(ctx, w.store, name, tenant); err != nil {
				t.Fatal(err)
			}
		}
	}
	if w.creds["shared"], err = hub.AddNode(ctx, w.store, "shared", ""); err != nil {
		t.Fatal(err)
	}
	w.listen = "127.0.0.1:0"
	w.startHub()
	w.listen = strings.TrimPrefix(w.hub.URL(), "nats://")
	for _, name := range []string{"a0", "a1", "b0", "b1", "shared"} {
		w.startNode(name)
	}
	for _, tenant := range []string{"a", "b"} {
		w.startGate(tenant)
		w.startGate(tenant)
	}
	return w
}

func (w *world) startHub() {
	h, err := hub.Start(context.Background(), hub.Options{Listen: w.listen, Store: w.store})
	if err != nil {
		w.t.Error(err)
		return
	}
	w.hub = h
}

func (w *world) connect(creds string) *bus.Conn {
	of, err := hub.ReadCreds(w.creds[creds])
	if err != nil {
		w.t.Error(err)
		return nil
	}
	c, err := of.Connect(context.Background(), bus.Options{URL: w.hub.URL(), Creds: w.creds[creds],
		Timeout: time.Minute})
	if err != nil {
		w.t.Error(err)
	}
	return c
}

func (w *world) startNode(name string) {
	c := w.connect(name)
	if c == nil {
		return
	}
	n, err := node.Start(context.Background(), c, node.Options{Name: name, Slots: slotsOfNode,
		Shared: name == "shared", Server: execserver.Options{Environ: append(os.Environ(), "NODE="+name), Dir: "/"}})
	if err != nil {
		w.t.Error(name, err)
		c.Close()
		return
	}
	w.nodes[name] = &member{n, c}
}

func (w *world) startGate(tenant string) {
	c := w.connect(tenant)
	if c == nil {
		return
	}
	g, err := gateway.New(context.Background(), c, gateway.Options{Queue: 20 * time.Second})
	if err != nil {
		w.t.Error(err)
		c.Close()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gates[tenant] = append(w.gates[tenant], &gate{g, c})
}

// happen has one thing happen. Only one goroutine calls it.
func (w *world) happen() {
	name := []string{"a0", "a1", "b0", "b1", "shared"}[rand.IntN(5)]
	tenant := []string{"a", "b"}[rand.IntN(2)]
	switch rand.IntN(4) {
	case 0: // the hub is killed, and started again
		_ = w.hub.Close()
		w.startHub()
	case 1: // a node goes without a word, and comes back
		if n := w.nodes[name]; n != nil {
			n.conn.Close()
			_ = n.Close(context.Background()) // the commands of a dead machine end
			delete(w.nodes, name)
			w.startNode(name)
		}
	case 2: // a node leaves properly, and comes back
		if n := w.nodes[name]; n != nil {
			_ = n.Close(context.Background())
			n.conn.Close()
			delete(w.nodes, name)
			w.startNode(name)
		}
	case 3: // a gateway dies; the other one goes on
		if g := w.gates[tenant]; len(g) > 0 {
			w.mu.Lock()
			w.gates[tenant] = g[1:]
			w.mu.Unlock()
			g[0].conn.Close()
			_ = g[0].Shutdown(context.Background())
			w.startGate(tenant)
		}
	}
}

// dial connects a client to some gateway of a tenant.
func (w *world) dial(tenant string) func(context.Context) (wire.Stream, error) {
	return func(context.Context) (wire.Stream, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		gates := w.gates[tenant]
		if len(gates) == 0 {
			return nil, errors.New("no gateway")
		}
		return gates[rand.IntN(len(gates))].Dial(context.Background())
	}
}

// client runs commands of a tenant, one after another.
func (w *world) client(tenant string, number int) {
	for i := 0; w.life.Err() == nil; i++ {
		key := fmt.Sprintf("%s-%d-%d", tenant, number, i)
		for tries := 0; ; tries++ {
			end, err := w.command(tenant, key)
			if err == nil {
				w.mu.Lock()
				w.ends[key] = end
				w.mu.Unlock()
				break
			}
			if tries > 200 {
				w.t.Errorf("%s: %v", key, err)
				break
			}
			w.mu.Lock()
			w.unknown++
			w.mu.Unlock()
			<-time.After(20 * time.Millisecond) // as a client would
		}
	}
}

// command performs a start with a key, and returns the end that it was told; an error is one after which a
// client tries again.
func (w *world) command(tenant, key string) (end string, err error) {
	s := &site{t: w.t}
	c, err := s.tryOver(w.dial(tenant))
	if err != nil {
		return "", err
	}
	defer c.Close()
	code := rand.IntN(50)
	script := fmt.Sprintf("echo \"+$NODE %s\" >>%s; echo out; sleep 0.0%d; echo \"-$NODE %s\" >>%s; exit 7", key, w.log,
		code, key, w.log)
	sandboxed := map[string]any{"permissions": map[string]any{"type": "managed", "network": "restricted",
		"file_system": map[string]any{"type": "restricted", "entries": []any{
			map[string]any{"access": "read", "path": map[string]any{"type": "special",
				"value": map[string]any{"kind": "root"}}},
			map[string]any{"access": "write", "path": map[string]any{"type": "path",
				"path": wire.URI(filepath.Dir(w.log))}},
		}}}, "windowsSandboxLevel": "disabled"}
	err = c.Call(context.Background(), "process/start", map[string]any{"processId": key, "idempotencyKey": key,
		"argv": []string{"/bin/sh", "-c", script}, "cwd": wire.URI(filepath.Dir(w.log)), "env": map[string]string{},
		"tty": false, "sandbox": sandboxed, "envPolicy": map[string]any{"inherit": "all",
			"ignoreDefaultExcludes": true, "exclude": []string{}, "set": map[string]string{}, "includeOnly": []string{}},
	}, nil)
	switch reason := wire.RefusalOf(err).Reason; {
	case reason == wire.ReasonLost:
		return "lost", nil
	case reason == "started": // by a try of before, whose session is another one
		return "lost", nil
	case err != nil:
		return "", err
	}
	after := uint64(0)
	out := ""
	for {
		var page wire.ReadResult
		if err := c.Repeat(context.Background(), "process/read", map[string]any{"processId": key, "afterSeq": after,
			"waitMs": 1000}, &page); err != nil {
			// The session is one of a node that has left; all other ends are told.
			if !strings.Contains(err.Error(), "unknown session") {
				w.t.Errorf("%s: %v", key, err)
			}
			return "lost", nil
		}
		for _, chunk := range page.Chunks {
			out += string(chunk.Chunk)
			after = chunk.Seq
		}
		switch {
		case page.Closed && page.Lost:
			return "lost", nil
		case page.Closed && len(page.Chunks) == 0:
			if page.ExitCode == nil {
				return "lost", nil
			}
			if *page.ExitCode == 7 && out != "out\n" {
				w.t.Errorf("%s: output %q", key, out)
			}
			return fmt.Sprint("exit ", *page.ExitCode), nil
		}
	}
}

// check looks at what the commands have written.
func (w *world) check() {
	file, err := os.Open(w.log)
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	begun, running := make(map[string]int), make(map[string]int)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		where, key, _ := strings.Cut(lines.Text(), " ")
		mark, name := where[0], where[1:]
		if mark == '+' {
			if begun[key]++; begun[key] > 1 {
				w.t.Errorf("%s ran twice", key)
			}
			if name != "shared" && name[0] != key[0] {
				w.t.Errorf("%s ran on %s", key, name)
			}
		}
		if w.ends[key] != "exit 7" {
			continue // it may have been killed: when, is not in the log
		}
		if mark == '-' {
			running[name]--
		} else if running[name]++; running[name] > slotsOfNode {
			w.t.Errorf("%s runs %d", name, running[name])
		}
	}
	lost := 0
	for key, end := range w.ends {
		switch {
		case end == "exit 7" && begun[key] != 1:
			w.t.Errorf("%s: %s, and it began %d times", key, end, begun[key])
		case end != "exit 7":
			lost++
		}
	}
	w.t.Logf("%d commands, %d lost or killed, %d tries again", len(w.ends), lost, w.unknown)
	if len(w.ends) < 10 {
		w.t.Error("nothing was tested")
	}
}

func (w *world) close() {
	for _, gates := range w.gates {
		for _, g := range gates {
			_ = g.Shutdown(context.Background())
			g.conn.Close()
		}
	}
	for _, n := range w.nodes {
		_ = n.Close(context.Background())
		n.conn.Close()
	}
	_ = w.hub.Close()
}
