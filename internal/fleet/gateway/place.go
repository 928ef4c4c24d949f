// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// need returns what the first request of a session needs of its node.
func need(of *subject, labels map[string]string) fleet.Need {
	n := fleet.Need{Labels: labels}
	if of.Confine != nil {
		n.Level = of.Confine.Level
	}
	flags := of.Args
	if end := slices.Index(flags, "--"); end >= 0 {
		flags = flags[:end]
	}
	for i, word := range flags {
		if level, ok := strings.CutPrefix(word, "--level="); ok {
			n.Level = level
		} else if word == "--level" && i+1 < len(flags) {
			n.Level = flags[i+1]
		}
	}
	return n
}

// placeFailure returns the error for a session that finds no place.
func placeFailure(err error) *wire.Error {
	reason := "noNode"
	if errors.Is(err, fleet.ErrNoSlot) {
		reason = "noFreeSlot"
	}
	data, _ := json.Marshal(map[string]any{"reason": reason, "exitCode": 125}) // it always encodes
	return &wire.Error{Code: wire.CodeInvalidRequest, Message: err.Error(), Data: data}
}

// place gives the session a node unless it has one, for a start with a slot of it.
func (c *connection) place(starts bool, n fleet.Need) error {
	if c.link() != nil {
		return nil
	}
	for tries := 0; ; tries++ {
		var node fleet.Record
		var err error
		if starts {
			node, err = c.gateway.registry.Place(c.life, c.id, n, c.gateway.opts.Queue)
		} else {
			node, err = c.gateway.registry.Choose(n)
		}
		if err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
		// One that has just gone has started nothing: another one may.
		if err = c.settle(&node); !errors.Is(err, errGone) || tries == maxTries {
			return err
		}
	}
}

// maxTries is how many nodes may go while a session is put on them.
const maxTries = 3

// errGone says that the node of a session went before the session was on it.
var errGone = errors.New("the node has gone")

// settle puts the session on a node: the hub is told, and the node makes the session.
func (c *connection) settle(node *fleet.Record) error {
	before := c.kept
	kept := before
	kept.Node, kept.Shared, kept.Boot, kept.Epoch = node.Name, node.Shared, node.Boot, node.Epoch
	c.mu.Lock()
	c.kept = kept
	c.mu.Unlock()
	if failure := c.keep(); failure != nil {
		c.leaveNode("", before)
		return failure
	}
	err := c.join(node, new(wire.Initialize))
	if err == nil {
		err = c.greet()
	}
	if err != nil {
		c.leaveNode("the session is not used", before) // another node may take it
		_ = c.keep()                                   // what the hub keeps is written again with that
		if refused := new(wire.Error); !errors.As(err, &refused) {
			err = fmt.Errorf("%w: %w", errGone, err)
		}
		// It may have the session nevertheless, or a slot for it.
		c.gateway.client.Tell(node.Address(), fleet.MethodKill, fleet.Kill{Session: c.id, Unused: true})
		return fmt.Errorf("the node %s does not take the session: %w", node.Name, err)
	}
	if c.gateway.opts.Narrow {
		return c.gateway.registry.Only(node.Address()) //nolint:wrapcheck // it says what failed
	}
	return nil
}

// greet makes the handshake for a session that the client believes to have.
func (c *connection) greet() error {
	l, hello := c.link(), *c.hello
	hello.Resume, hello.Observe = "", ""
	params, err := json.Marshal(&hello)
	if err != nil {
		return fmt.Errorf("cannot greet: %w", err)
	}
	first, err := wire.Request(wire.Number(0), "initialize", params, wire.Trace{})
	if err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	m, _, err := c.exchange(l, first)
	switch {
	case err != nil:
		return err
	case m.Kind == wire.KindError:
		return m.Error
	}
	c.pass(l, []byte(`{"method":"initialized"}`))
	c.work.Go(func() { c.pump(l) })
	return nil
}

// exchange sends the first request on a link and reads its answer.
func (c *connection) exchange(l *link.Link, request []byte) (m *wire.Message, text []byte, err error) {
	late := time.AfterFunc(nodeTime, func() { l.Cut("the node does not answer") })
	defer late.Stop()
	if err := l.Write(request); err != nil {
		return nil, nil, err //nolint:wrapcheck // it says what failed
	}
	if text, err = l.Read(); err != nil {
		return nil, nil, err //nolint:wrapcheck // likewise
	}
	m, err = wire.DecodeMessage(text)
	return m, text, err //nolint:wrapcheck // likewise
}

// keyed prepares a start with a key that is performed once. It reports true if that was answered: it was
// performed elsewhere, or cannot be.
func (c *connection) keyed(m *wire.Message, of *subject) (done bool) {
	sum := sha256.Sum256([]byte(c.credential + "\x00" + of.Key))
	key := hex.EncodeToString(sum[:])[:40]
	for {
		var start fleet.KeptStart
		text, _, err := c.gateway.starts.Get(c.life, key)
		switch {
		case err == nil && json.Unmarshal(text, &start) == nil:
			return c.again(m, of, &start)
		case !errors.Is(err, bus.ErrNoKey):
			c.fail(m.ID, &wire.Error{Code: wire.CodeInternal,
				Message: fmt.Sprintf("cannot learn whether the start with this key was performed: %v", err)})
			return true
		}
		// The node is fixed before it is asked, and has reserved a slot.
		if err := c.place(true, need(of, c.kept.Labels)); err != nil {
			c.fail(m.ID, placeFailure(err))
			return true
		}
		text, _ = json.Marshal(fleet.KeptStart{Node: c.kept.Node, Shared: c.kept.Shared, Boot: c.kept.Boot,
			Epoch: c.kept.Epoch, Session: c.id}) // it always encodes
		err = c.gateway.starts.Update(c.life, key, text, 0)
		switch {
		case err == nil:
			return false
		case !errors.Is(err, bus.ErrChanged):
			c.fail(m.ID, &wire.Error{Code: wire.CodeInternal, Message: err.Error()})
			return true
		}
	}
}

// again performs a start with a key that a node was asked for before: that node knows what became of it.
func (c *connection) again(m *wire.Message, of *subject, start *fleet.KeptStart) (done bool) {
	if c.link() != nil && c.kept.Node == start.Node && c.kept.Boot == start.Boot {
		return false
	}
	changed := c.gateway.registry.Changed()
	node, err := c.gateway.node(c.life, &fleet.KeptSession{Node: start.Node, Shared: start.Shared, Boot: start.Boot,
		Epoch: start.Epoch})
	lost := new(executor.LostError)
	switch {
	case errors.As(err, &lost):
		c.answerLost(m.ID, lost, pending{m.Method, *of})
	case errors.Is(err, errLeft):
		c.answerLost(m.ID, &executor.LostError{Machine: start.Node}, pending{m.Method, *of})
	case err != nil:
		c.fail(m.ID, &wire.Error{Code: wire.CodeInternal, Message: err.Error()})
	case c.link() == nil:
		err := c.settle(&node)
		if errors.Is(err, errGone) && c.await(changed) { // whether it was lost or has left is about to be known
			return c.again(m, of, start)
		}
		if err != nil {
			c.fail(m.ID, placeFailure(err))
		}
		return err != nil
	case m.Method == "process/start":
		data, _ := json.Marshal(map[string]string{"reason": "started", "session": start.Session})
		c.fail(m.ID, &wire.Error{Code: wire.CodeInvalidRequest, Data: data,
			Message: "a start with this key was made in another session"})
	default:
		c.beside(m.ID, c.on(&node, m.Method, m.Params))
	}
	return true
}

// await waits until something changes, or a node must have answered. It reports whether something has.
func (c *connection) await(changed <-chan struct{}) bool {
	timer := time.NewTimer(nodeTime)
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C:
	case <-c.life.Done():
	}
	return false
}
