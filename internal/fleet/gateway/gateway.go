// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway lets clients of the exec-server protocol use the nodes of a fleet as if they were one
// exec-server.
//
// Each connection of a client has a session, which is placed on a node when it first needs one. From then on
// messages pass through as they are. Requests about runs of other nodes, and lists of all, are asked from
// those nodes. What must outlive a gateway is kept by the hub, and all else by the nodes: a client that was
// cut from one gateway goes on at another.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// Options say what a Gateway does.
type Options struct {
	// Queue is how long a session waits for a free slot; zero is not at all. With Narrow it is also how long
	// New waits for a node with the labels, and what is left of it is for the slot.
	Queue time.Duration
	// Labels are those that the node of each session must have, beside what the client asks for.
	Labels map[string]string
	// Narrow has the gateway watch only the node of its one session: for one client of its own.
	Narrow bool
}

// A Gateway serves clients of one account. Make one with New.
type Gateway struct {
	opts     Options
	conn     *bus.Conn
	client   *link.Client
	registry *fleet.Registry
	sessions *bus.Bucket
	starts   *bus.Bucket
	away     time.Duration

	mu          sync.Mutex
	closed      bool
	connections map[*connection]struct{}
	work        sync.WaitGroup
}

// New returns a Gateway, which uses conn until Shutdown. It blocks until the nodes that are there have
// answered. The error is fleet.ErrNoNode where a queue has ended without a node.
func New(ctx context.Context, conn *bus.Conn, o Options) (_ *Gateway, err error) {
	g := &Gateway{opts: o, conn: conn, away: awayTime, connections: make(map[*connection]struct{})}
	if g.sessions, g.starts, err = fleet.Buckets(ctx, conn); err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	if g.client, err = link.NewClient(conn, false); err != nil {
		return nil, err //nolint:wrapcheck // likewise
	}
	if g.registry, err = fleet.NewRegistry(ctx, conn, g.client, !o.Narrow); err != nil {
		g.client.Close()
		return nil, err //nolint:wrapcheck // likewise
	}
	if o.Narrow && o.Queue > 0 {
		begin := time.Now()
		if _, err = g.like(ctx, o.Labels, o.Queue); err != nil {
			return nil, errors.Join(err, g.Shutdown(ctx))
		}
		g.opts.Queue -= min(time.Since(begin), o.Queue)
	}
	return g, nil
}

// like returns the whole record of a node that a session with these labels could be placed on. It waits for
// one.
func (g *Gateway) like(ctx context.Context, labels map[string]string, wait time.Duration,
) (fleet.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		changed := g.registry.Changed()
		r, err := g.registry.Like(fleet.Need{Labels: labels})
		if err == nil {
			return r, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return r, err //nolint:wrapcheck // it says what failed
		}
	}
}

// Serve speaks with one client until the connection ends, and closes the stream. Sessions and runs belong to
// the credential. Query may have label=KEY=VALUE, repeatedly.
func (g *Gateway) Serve(stream wire.Stream, credential string, query url.Values) error {
	c := newConnection(g, stream, credential)
	g.mu.Lock()
	closed := g.closed
	if !closed {
		g.connections[c] = struct{}{}
		g.work.Add(1)
		defer g.work.Done()
	}
	g.mu.Unlock()
	defer c.finish()
	if closed {
		return wire.ErrServerEnded
	}
	labels, err := fleet.ParseLabels(query["label"])
	if err != nil {
		c.failed = &wire.Error{Code: wire.CodeInvalidParams, Message: err.Error()}
	}
	for key, value := range g.opts.Labels {
		labels = set(labels, key, value)
	}
	c.kept.Labels = labels
	err = c.serve()
	// One that has started nothing is forgotten.
	if c.hello != nil && c.hello.Observe == "" && c.kept.Node == "" && !g.opts.Narrow {
		if err == nil {
			g.drop(c.id, &c.kept)
		} else {
			time.AfterFunc(g.away, func() { g.drop(c.id, &c.kept) })
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.connections, c)
	return err
}

// drop has the hub forget a session that has started nothing, unless its record has changed: its client has
// ended it, or was cut and has not come back anywhere.
func (g *Gateway) drop(id string, kept *fleet.KeptSession) {
	ctx, cancel := context.WithTimeout(context.Background(), dropTime)
	defer cancel()
	var now fleet.KeptSession
	text, revision, err := g.sessions.Get(ctx, id)
	if err == nil && json.Unmarshal(text, &now) == nil && now.Node == "" && now.Resumed == kept.Resumed {
		_ = g.sessions.Delete(ctx, id, revision) // the hub forgets it by itself
	}
}

const (
	// dropTime is how long forgetting a session may take.
	dropTime = 5 * time.Second
	// awayTime is how long a client that was cut may stay away if it has started nothing: longer than ours
	// try.
	awayTime = 2 * time.Minute
)

func set(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = make(map[string]string)
	}
	labels[key] = value
	return labels
}

// Dial connects a client in this process.
func (g *Gateway) Dial(context.Context) (wire.Stream, error) {
	client, own := wire.Pipe()
	go func() { _ = g.Serve(own, "", nil) }() // the client sees the end
	return client, nil
}

// Shutdown ends all connections: the clients can go on at another gateway.
func (g *Gateway) Shutdown(context.Context) error {
	g.mu.Lock()
	g.closed = true
	for c := range g.connections {
		go c.leave()
	}
	g.mu.Unlock()
	g.work.Wait()
	g.registry.Close()
	g.client.Close()
	return nil
}

// Registry is that of the nodes of the account.
func (g *Gateway) Registry() *fleet.Registry { return g.registry }

// node waits until a node is there, or is known to be lost. The hub may have been away, and all of its nodes
// with it.
func (g *Gateway) node(ctx context.Context, of *fleet.KeptSession) (fleet.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	g.registry.Expect(of)
	for {
		changed := g.registry.Changed()
		if lost, known := g.registry.IsLost(of.Node, of.Boot, of.Epoch); lost {
			return fleet.Record{}, &executor.LostError{Machine: of.Node}
		} else if !known {
			return fleet.Record{}, errLeft
		}
		if r, ok := g.registry.Find(of.Node); ok {
			return r, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fleet.Record{}, fmt.Errorf("the node %s is not there: %w", of.Node, context.Cause(ctx))
		}
	}
}

// open opens a link to a node. One that was declared lost just before is an *executor.LostError: nothing
// would end the link, as no end hears of that again.
func (g *Gateway) open(of *fleet.Record, o fleet.Opening) (*link.Link, error) {
	l, err := g.client.Open(of.Address(), o)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	if lost, known := g.registry.IsLost(of.Name, of.Boot, of.Epoch); lost || !known {
		l.Cut("the node was lost")
		return nil, &executor.LostError{Machine: of.Name}
	}
	return l, nil
}

// nodeTime is how long the hub and a node may be away before a client hears of it.
const nodeTime = 20 * time.Second

// errLeft says that a node has left, with all that it had.
var errLeft = errors.New("the node of the session has left")
