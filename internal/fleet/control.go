// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
)

// A Control shows and changes what an account has. Make one with NewControl.
type Control struct {
	client   *link.Client
	registry *Registry
	sessions *bus.Bucket
}

// NewControl returns a Control, which uses conn until Close. It blocks until the nodes that are there have
// answered.
func NewControl(ctx context.Context, conn *bus.Conn) (c *Control, err error) {
	c = new(Control)
	if c.sessions, _, err = Buckets(ctx, conn); err != nil {
		return nil, err
	}
	if c.client, err = link.NewClient(conn, false); err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	if c.registry, err = NewRegistry(ctx, conn, c.client, true); err != nil {
		c.client.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the use of the connection, which stays open.
func (c *Control) Close() {
	c.registry.Close()
	c.client.Close()
}

// Nodes returns the nodes by name, those that are lost as well.
func (c *Control) Nodes() []Record { return c.registry.Nodes() }

// answerTime is how long nodes may take to answer a call that takes them no time.
const answerTime = 5 * time.Second

// endTime is how long the end of a session may take: commands may have time to end.
const endTime = time.Minute

// Sessions returns the sessions of the account, those that began first first: what the nodes have, and what
// the hub keeps of those that no node has. It blocks until all nodes that are alive have answered, at most
// some seconds; one that does not answer is an error.
func (c *Control) Sessions(ctx context.Context) ([]Session, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	kept := make(map[string]KeptSession)
	// Before the nodes are asked: what begins meanwhile is no session that its node does not have.
	err := c.sessions.All(ctx, func(id string, value []byte) {
		var k KeptSession
		if json.Unmarshal(value, &k) == nil && bus.Token(id) {
			kept[id] = k
		}
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	list, err := c.living(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s Session) bool { // what a node says of sessions of others does not count
		k := kept[s.ID]
		return k.Node != "" && k.Node != s.Node
	})
	for _, s := range list {
		delete(kept, s.ID)
	}
	for id, k := range kept {
		list = append(list, Session{ID: id, Node: k.Node, State: c.state(&k), Started: k.Started})
	}
	slices.SortFunc(list, func(a, b Session) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// state is that of a session that no node lists.
func (c *Control) state(k *KeptSession) SessionState {
	if k.Node == "" {
		return SessionStarting
	}
	// A node that is not heard, and is not declared lost yet, is lost to who asks.
	lost, known := c.registry.IsLost(k.Node, k.Boot, k.Epoch)
	if _, alive := c.registry.Find(k.Node); known && !alive || lost && !c.registry.hasLeft(k) {
		return SessionLost
	}
	return SessionEnded
}

// living asks all nodes that are alive for their sessions.
func (c *Control) living(ctx context.Context) ([]Session, error) {
	var mu sync.Mutex
	list := []Session{}
	var errs []error
	var work sync.WaitGroup
	for _, node := range c.registry.Nodes() {
		if node.State == Lost {
			continue
		}
		work.Go(func() {
			var some []Session
			err := c.client.Call(ctx, node.Address(), MethodSessions, nil, &some)
			if _, alive := c.registry.Find(node.Name); err != nil && !alive {
				return // it is lost, or has left
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
			for _, s := range some {
				s.Node = node.Name
				list = append(list, s)
			}
		})
	}
	work.Wait()
	return list, errors.Join(errs...)
}

// find returns a node that is alive.
func (c *Control) find(name string) (Record, error) {
	r, ok := c.registry.Find(name)
	if !ok {
		for _, other := range c.registry.Nodes() {
			if other.Name == name {
				return r, fmt.Errorf("the node %s is lost; start it again", name)
			}
		}
		return r, fmt.Errorf("%w has the name %q; sallyport fleet nodes lists them", ErrNoNode, name)
	}
	return r, nil
}

// Drain has a node take no new sessions, and leave when nothing runs there any more, or at the deadline. It
// blocks until the node has left, or without wait until it takes no more sessions.
func (c *Control) Drain(ctx context.Context, name string, deadline time.Duration, wait bool) error {
	node, err := c.find(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		answered <- c.client.Call(ctx, node.Address(), MethodDrain, Drain{deadline.Milliseconds()}, nil)
	}()
	asked := time.NewTimer(answerTime)
	defer asked.Stop()
	for {
		changed := c.registry.Changed()
		now, alive := c.registry.Find(name)
		draining := alive && now.State == Draining
		if lost, known := c.registry.IsLost(name, node.Boot, node.Epoch); lost {
			return fmt.Errorf("the node %s was lost while it was drained", name)
		} else if !known || draining && !wait {
			return nil
		}
		if draining {
			asked.Stop()
		}
		select {
		case err := <-answered: // the connection may have been cut before it comes
			return err //nolint:wrapcheck // it says what failed
		case <-changed:
		case <-asked.C:
			return fmt.Errorf("the node %s did not answer", name)
		case <-ctx.Done():
			return context.Cause(ctx) //nolint:wrapcheck // the caller knows
		}
	}
}

// Undrain has a node that is drained take sessions again.
func (c *Control) Undrain(ctx context.Context, name string) error {
	node, err := c.find(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return c.client.Call(ctx, node.Address(), MethodUndrain, nil, nil) //nolint:wrapcheck // it says what failed
}

// Kill ends a session, with everything that it has started.
func (c *Control) Kill(ctx context.Context, id string) error {
	list, err := c.Sessions(ctx)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(list, func(s Session) bool { return s.ID == id })
	switch {
	case n < 0:
		return fmt.Errorf("there is no session %q; sallyport fleet sessions lists them", id)
	case list[n].State == SessionLost:
		return fmt.Errorf("the session was on the node %s, which is lost with all that it had", list[n].Node)
	case list[n].Node == "":
		return errors.New("the session has started nothing that could be ended")
	}
	node, err := c.find(list[n].Node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	err = c.client.Call(ctx, node.Address(), MethodKill, Kill{Session: id}, nil)
	if no := new(link.CallError); errors.As(err, &no) && no.Reason == "unknownSession" {
		return nil // it has ended
	}
	return err //nolint:wrapcheck // it says what failed
}
