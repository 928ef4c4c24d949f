// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// noSlot is the answer to a start for which there is no slot.
func noSlot() *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidRequest, Message: fleet.ErrNoSlot.Error() + " on the node of this session",
		Data: json.RawMessage(`{"reason":"noFreeSlot","exitCode":125}`)}
}

// Errors of calls.
var (
	errForm    = &link.CallError{Reason: "invalid", Message: "the parameters of the call are wrong"}
	errUnknown = &link.CallError{Reason: "unknownSession", Message: "the node has no such session"}
	errShared  = &link.CallError{Reason: "denied", Message: "the node serves all tenants; drain it with its own credentials"}
)

// call performs a call of a client.
func (n *Node) call(ctx context.Context, p link.Peer, method string, params json.RawMessage) (any, error) {
	switch method {
	case fleet.MethodRecord:
		r := n.Record()
		r.Info, _ = json.Marshal(n.server.Environment()) // it always encodes
		return r, nil
	case fleet.MethodSessions:
		return n.list(p), nil
	case fleet.MethodReserve:
		return perform(params, func(r fleet.Reserve) (any, error) { return n.reserve(p, r), nil })
	case fleet.MethodKill:
		return perform(params, func(k fleet.Kill) (any, error) { return struct{}{}, n.kill(p, k) })
	case fleet.MethodFence:
		return perform(params, func(f fleet.Fence) (any, error) { return n.fence(p, f.Epoch) })
	case fleet.MethodDrain:
		return perform(params, func(d fleet.Drain) (any, error) { return struct{}{}, n.drain(ctx, p, d) })
	case fleet.MethodUndrain:
		return struct{}{}, n.undrain(p)
	}
	return nil, errForm
}

// perform decodes the parameters of a call.
func perform[P any](params json.RawMessage, with func(P) (any, error)) (any, error) {
	var p P
	if json.Unmarshal(params, &p) != nil {
		return nil, errForm
	}
	return with(p)
}

// maxListed is how many sessions one answer has: the newest ones.
const maxListed = 5000

// list returns the sessions of an account.
func (n *Node) list(p link.Peer) []fleet.Session {
	list := []fleet.Session{}
	for _, s := range n.server.Sessions() {
		if !owns(p, s.Credential) || strings.HasPrefix(s.ID, sidePrefix) && s.Living == 0 {
			continue
		}
		state := fleet.SessionEnded
		if s.Attached || s.Living > 0 {
			state = fleet.SessionRunning
		}
		list = append(list, fleet.Session{ID: s.ID, Node: n.opts.Name, State: state, Started: s.Started.UnixMilli()})
	}
	slices.SortFunc(list, func(a, b fleet.Session) int { return cmp.Compare(b.Started, a.Started) })
	return list[:min(len(list), maxListed)]
}

// kill ends a session of an account.
func (n *Node) kill(p link.Peer, k fleet.Kill) error {
	err := error(errUnknown)
	n.mu.Lock()
	if t := n.reserved[k.Session]; t != nil && t.account == p.Account && t.Stop() {
		delete(n.reserved, k.Session)
		n.changed()
		err = nil
	}
	n.mu.Unlock()
	for _, s := range n.server.Sessions() {
		if s.ID == k.Session && owns(p, s.Credential) && !(k.Unused && (s.Attached || s.Living > 0)) {
			n.server.EndSession(k.Session)
			err = nil
		}
	}
	n.forget()
	return err
}

// fence ends what an account has that was begun in an epoch in which the node was declared lost, or before.
func (n *Node) fence(p link.Peer, epoch uint64) (any, error) {
	n.mu.Lock()
	if epoch > n.record.Epoch {
		n.mu.Unlock()
		return nil, errForm // no client has seen it
	}
	if epoch == n.record.Epoch {
		n.record.Epoch++
		n.changed()
	}
	n.fenced[p.Account] = max(n.fenced[p.Account], epoch)
	var old []string
	for key, a := range n.sessions {
		if account, id, _ := strings.Cut(key, "/"); account == p.Account && a.epoch <= epoch {
			old = append(old, id)
		}
	}
	n.mu.Unlock()
	var work sync.WaitGroup
	for _, s := range n.server.Sessions() {
		if owns(p, s.Credential) && slices.Contains(old, s.ID) {
			work.Go(func() { n.server.EndSession(s.ID) })
		}
	}
	work.Wait()
	n.forget()
	_ = n.keep() // what is kept is a hint for those who do not hear the node
	return n.Record(), nil
}

// keep has the hub keep the record, where this account keeps it.
func (n *Node) keep() error {
	ctx, cancel := context.WithTimeout(n.life, fleet.Lease)
	defer cancel()
	for {
		var k fleet.Kept
		value, revision, err := n.kept.Get(ctx, n.opts.Name)
		if err == nil {
			err = json.Unmarshal(value, &k)
		}
		if err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
		k.Record = n.Record()
		text, _ := json.Marshal(k) // it always encodes
		if err := n.kept.Update(ctx, n.opts.Name, text, revision); !errors.Is(err, bus.ErrChanged) {
			return err //nolint:wrapcheck // it says what failed
		}
	}
}

// check looks, after the connection was cut, whether the node was declared lost meanwhile.
func (n *Node) check() {
	n.say() // its clients learn that their links have ended
	ctx, cancel := context.WithTimeout(n.life, 10*time.Second)
	defer cancel()
	var k fleet.Kept
	value, _, err := n.kept.Get(ctx, n.opts.Name)
	if err != nil || json.Unmarshal(value, &k) != nil {
		return // those who have declared it say so themselves
	}
	if k.Boot > n.Record().Boot {
		n.giveWay()
		return
	}
	if k.Lost >= n.Record().Epoch && !n.opts.Shared {
		_, _ = n.fence(link.Peer{}, k.Lost) // it is no higher than what was seen
	}
}

// mayDrain returns why a client may not drain the node.
func (n *Node) mayDrain(p link.Peer) error {
	if n.opts.Shared && p.Account != link.Operator {
		return errShared
	}
	return nil
}

// drain has the node take no new sessions and leave when nothing runs any more, or at the deadline. It blocks
// until then; the end of ctx ends the wait only.
func (n *Node) drain(ctx context.Context, p link.Peer, d fleet.Drain) error {
	if err := n.mayDrain(p); err != nil {
		return err
	}
	n.mu.Lock()
	if n.record.State == fleet.Ready {
		n.record.State = fleet.Draining
	}
	n.changed()
	n.mu.Unlock()
	deadline := time.NewTimer(time.Duration(min(max(d.DeadlineMs, 0), maxDeadlineMs)) * time.Millisecond)
	defer deadline.Stop()
	var patience <-chan time.Time // nil while something runs
	for over := false; !over; {
		idle := n.whenIdle()
		select {
		case <-idle:
		case <-patience:
			over = true
		case <-deadline.C:
			over = true
		case <-n.left:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		n.mu.Lock()
		undrained := n.record.State == fleet.Ready
		over = over || n.isIdle()
		switch {
		case n.busy() > 0:
			patience = nil
		case patience == nil:
			patience = time.After(partTime)
		}
		n.mu.Unlock()
		if undrained {
			return &link.CallError{Reason: "undrained", Message: "the node was undrained meanwhile"}
		}
	}
	return n.leave(context.WithoutCancel(ctx))
}

// partTime is how long a node that drains waits, when nothing runs any more, for clients that have sessions
// on it: they may still read how what they had ended.
const partTime = 10 * time.Second

// maxDeadlineMs is the longest deadline: a week.
const maxDeadlineMs = 7 * 24 * 60 * 60 * 1000

// whenIdle returns a channel that is closed when no session is running, or when that is to be looked at.
func (n *Node) whenIdle() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isIdle() {
		idle := make(chan struct{})
		close(idle)
		return idle
	}
	if n.idle == nil {
		n.idle = make(chan struct{})
	}
	return n.idle
}

// undrain has the node take sessions again.
func (n *Node) undrain(p link.Peer) error {
	if err := n.mayDrain(p); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leaving {
		return &link.CallError{Reason: "leaving", Message: "the node is leaving"}
	}
	n.record.State = fleet.Ready
	if n.idle != nil {
		close(n.idle) // who drains looks again
		n.idle = nil
	}
	n.changed()
	return nil
}
