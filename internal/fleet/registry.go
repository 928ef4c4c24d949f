// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
)

// A Registry knows the nodes that an account can use, hears whether they live, and declares those lost that
// do not. Make one with NewRegistry.
type Registry struct {
	conn   *bus.Conn
	client *link.Client
	kept   *bus.Bucket
	life   context.Context
	end    context.CancelFunc
	work   sync.WaitGroup
	stops  []func()

	mu      sync.Mutex
	nodes   map[string]*entry
	changed chan struct{} // closed at the next change
	steady  time.Time     // since when the hub answers in time; zero: it does not
	only    string        // the one node that is watched; empty for all
}

// An entry is a node.
type entry struct {
	Record
	heard  time.Time
	lost   uint64 // the highest epoch that was declared lost
	fenced time.Time
}

// isLost reports whether what the node had in an epoch is lost.
func (e *entry) isLost(boot, epoch uint64) bool { return epoch <= e.lost || boot != 0 && boot < e.Boot }

// alive reports whether the node can be used.
func (e *entry) alive() bool {
	return (e.State == Ready || e.State == Draining) && e.Epoch > e.lost && !e.heard.IsZero()
}

// NewRegistry returns a Registry of the nodes that conn's account can use. It blocks until all that are known
// have answered, or were declared lost, at most some seconds, and with whole until each has been heard that
// lives. The caller must call Close before it closes the others.
func NewRegistry(ctx context.Context, conn *bus.Conn, client *link.Client, whole bool) (*Registry, error) {
	r := &Registry{conn: conn, client: client, nodes: make(map[string]*entry), changed: make(chan struct{})}
	r.life, r.end = context.WithCancel(context.Background())
	var err error
	if r.kept, err = conn.Bucket(ctx, "nodes", 0); err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	err = r.kept.All(ctx, func(key string, value []byte) {
		var k Kept
		// A node may write what is kept of it, and nothing of others.
		if json.Unmarshal(value, &k) == nil && key == k.Record.Name && k.Record.State != Left {
			e := &entry{Record: k.Record, lost: k.Lost}
			e.State = Lost // until it is heard
			r.nodes[k.Record.Name] = e
		}
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	r.steady = time.Now()
	for _, scope := range []link.Scope{link.Own, link.Shared} {
		stop, err := conn.Subscribe(scope.Life(""), r.hear)
		if err != nil {
			r.Close()
			return nil, err //nolint:wrapcheck // it says what failed
		}
		r.stops = append(r.stops, stop)
	}
	heard := time.Now().Add(LifeInterval + LifeInterval/2)
	if err := r.ask(ctx); err != nil {
		r.Close()
		return nil, err
	}
	if whole && conn.Account() != "" { // there may be shared nodes, of which nothing is kept here
		select {
		case <-time.After(time.Until(heard)):
		case <-ctx.Done():
		}
	}
	r.work.Go(r.watch)
	return r, nil
}

// ask asks all nodes for their records, and waits for those that are known.
func (r *Registry) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Lease)
	defer cancel()
	for _, scope := range []link.Scope{link.Own, link.Shared} {
		stop, err := r.client.Ask(scope, MethodRecord, nil, func(a link.Address, text json.RawMessage) {
			r.take(a, text)
		})
		if err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
		defer stop()
	}
	// Where no node is known, those that there are answer sooner than the hub is asked twice.
	for range 2 {
		if err := r.conn.Check(ctx); err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
	}
	// Of shared nodes, and of those that were just started, the hub keeps nothing in this account.
	const moment, long = 30 * time.Millisecond, 100 * time.Millisecond
	soon, timer := time.NewTimer(moment), time.NewTimer(long)
	defer soon.Stop()
	defer timer.Stop()
	known := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.nodes {
			if e.heard.IsZero() && e.lost < e.Epoch {
				return false
			}
		}
		return len(r.nodes) > 0
	}
	for done, early := false, true; !done && (early || !known()); {
		select {
		case <-soon.C:
			early = false
		case <-r.Changed():
		case <-timer.C:
			r.mu.Lock()
			done = len(r.nodes) == 0
			r.mu.Unlock()
		case <-ctx.Done(): // they are lost, or others find out
			done = true
		}
	}
	return nil
}

// lifeMark begins what a node says of itself, and no answer of the hub.
var lifeMark = []byte{'L'}

// Life returns the message that tells a record.
func (r *Record) Life() []byte {
	text, _ := json.Marshal(r) // it always encodes
	return append(lifeMark[:1:1], text...)
}

// hear takes what a node says of itself.
func (r *Registry) hear(subject string, data []byte) {
	var of Record
	if !ReadLife(data, &of) {
		return
	}
	for _, scope := range []link.Scope{link.Own, link.Shared} {
		if bus.Token(of.Name) && subject == scope.Life(of.Name) {
			r.take(link.Address{Scope: scope, Node: of.Name}, data[len(lifeMark):])
		}
	}
}

// ReadLife reads what Life has made, and reports whether it is that.
func ReadLife(data []byte, of *Record) bool {
	text, ok := bytes.CutPrefix(data, lifeMark)
	return ok && json.Unmarshal(text, of) == nil
}

// take takes a record of a node.
func (r *Registry) take(a link.Address, text json.RawMessage) {
	var of Record
	if json.Unmarshal(text, &of) != nil || of.Name != a.Node {
		return
	}
	of.Shared = a.Scope == link.Shared
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.nodes[of.Name]
	switch {
	case e != nil && e.Shared != of.Shared && e.alive():
		return // another node has the name
	case e == nil && of.State == Left:
		return
	case e == nil:
		e = new(entry)
		r.nodes[of.Name] = e
	case of.Boot < e.Boot || of.Boot == e.Boot && (of.Epoch < e.Epoch || of.Cuts < e.Cuts):
		return // it came late
	}
	if of.Info == nil && of.Boot == e.Boot {
		of.Info = e.Info
	}
	known := e.alive()
	switch {
	case e.heard.IsZero():
	case e.Boot != of.Boot: // before anybody has declared the last one lost
		r.endLinks(a, &executor.LostError{Machine: of.Name})
	case e.Cuts != of.Cuts:
		r.endLinks(a, errNodeCut)
	}
	e.Record, e.heard = of, time.Now()
	if of.Epoch <= e.lost {
		r.fence(e)
	}
	if of.State == Left {
		delete(r.nodes, of.Name)
	}
	if of.Info == nil && !known && e.alive() && r.life.Err() == nil {
		r.work.Go(func() { r.complete(a) })
	}
	r.tell()
}

// errNodeCut ends links to a node whose connection was cut: it has none of them any more.
var errNodeCut = &link.ClosedError{Why: "the node was cut from the hub"}

// endLinks ends the links to a node. The caller holds mu.
func (r *Registry) endLinks(a link.Address, why error) {
	if r.life.Err() == nil {
		end := r.client.Links(a) // those of what the node is from now on are not opened yet
		r.work.Go(func() { end(why) })
	}
}

// complete asks a node for its whole record.
func (r *Registry) complete(a link.Address) {
	ctx, cancel := context.WithTimeout(r.life, Lease)
	defer cancel()
	var text json.RawMessage
	if r.client.Call(ctx, a, MethodRecord, nil, &text) == nil { // else it is asked again when it is heard again
		r.take(a, text)
	}
}

// fence tells a node that it was declared lost. The caller holds mu.
func (r *Registry) fence(e *entry) {
	if time.Since(e.fenced) < LifeInterval || r.life.Err() != nil {
		return
	}
	e.fenced = time.Now()
	a, epoch := e.Address(), e.lost
	r.work.Go(func() {
		ctx, cancel := context.WithTimeout(r.life, 10*time.Second)
		defer cancel()
		_ = r.client.Call(ctx, a, MethodFence, Fence{epoch}, nil) // it is told again when it is heard again
	})
}

// tell has those know who wait for a change. The caller holds mu.
func (r *Registry) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next change.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// watch declares nodes lost that were not heard, while the hub answers.
func (r *Registry) watch() {
	ticker := time.NewTicker(watchTime)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ticker.C:
		case <-r.life.Done():
			return
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(r.life, Lease)
		err := r.conn.Check(ctx)
		cancel()
		dead := r.look(begin.Sub(last), time.Since(begin), err)
		last = time.Now()
		var work sync.WaitGroup
		for i := range dead {
			work.Go(func() { r.declare(&dead[i]) })
		}
		work.Wait()
	}
}

// look returns the nodes that were silent for too long. Since is how long ago the last look was, and answered
// how long the hub took. A watcher that did not run itself, as one that was stopped, knows nothing of that
// time: what nodes said meanwhile may still be on its way to hear.
func (r *Registry) look(since, answered time.Duration, err error) (dead []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil || answered > watchTime+watchTime/2 || since > Lease/2:
		r.steady = time.Time{}
	case r.steady.IsZero():
		r.steady = time.Now()
	}
	for _, e := range r.nodes {
		if r.isDead(e) {
			dead = append(dead, *e)
		}
	}
	return dead
}

// isDead reports whether a node was silent for too long. The caller holds mu.
func (r *Registry) isDead(e *entry) bool {
	connected := r.conn.For()
	switch {
	case r.steady.IsZero() || connected == 0 || e.Epoch <= e.lost || r.only != "" && e.Name != r.only:
		return false
	case connected < again && e.heard.Before(time.Now().Add(-connected)):
		return false // it may be on its way back, too, or on its way here
	}
	since := e.heard
	if since.Before(r.steady) {
		since = r.steady
	}
	return time.Since(since) > Lease
}

// declare declares a node lost, for everybody who uses the bucket.
func (r *Registry) declare(dead *entry) {
	ctx, cancel := context.WithTimeout(r.life, Lease)
	defer cancel()
	left, err := r.keepLost(ctx, dead)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil { // at the next look; who waits for the node asks again meanwhile, and hears why
		r.endLinks(dead.Address(), errNodeCut)
		return
	}
	defer r.tell()
	e := r.nodes[dead.Name]
	switch {
	case e == nil || e.Boot != dead.Boot:
		return // it was heard meanwhile, which has ended the links
	case left:
		delete(r.nodes, dead.Name)
	default:
		e.lost = max(e.lost, dead.Epoch)
	}
	if e.Epoch > e.lost { // it has heard that by another watcher, and a link may be one of the new epoch
		r.endLinks(dead.Address(), errNodeCut)
		return
	}
	e.State = Lost
	r.endLinks(dead.Address(), &executor.LostError{Machine: dead.Name})
}

// keepLost writes that a node is lost, unless it has left.
func (r *Registry) keepLost(ctx context.Context, dead *entry) (left bool, err error) {
	for {
		var k Kept
		value, revision, err := r.kept.Get(ctx, dead.Name)
		switch {
		case errors.Is(err, bus.ErrNoKey) && dead.heard.IsZero() && !dead.Shared:
			return true, nil // what was kept of it was removed with its tenant
		case errors.Is(err, bus.ErrNoKey):
			revision = 0
		case err != nil:
			return false, err //nolint:wrapcheck // it says what failed
		case json.Unmarshal(value, &k) != nil:
			return false, fmt.Errorf("the hub keeps a damaged record of the node %s", dead.Name)
		case k.Record.State == Left && k.Boot >= dead.Boot:
			return true, nil
		case k.Lost >= dead.Epoch || k.Boot > dead.Boot:
			return false, nil
		}
		k.Lost, k.Record, k.Boot = max(k.Lost, dead.Epoch), dead.Record, max(k.Boot, dead.Boot)
		k.Record.Info = nil
		text, err := json.Marshal(k)
		if err == nil {
			err = r.kept.Update(ctx, dead.Name, text, revision)
		}
		if !errors.Is(err, bus.ErrChanged) {
			return false, err //nolint:wrapcheck // it says what failed
		}
	}
}

// Expect has a node be known that a client has used in an epoch: if it is not heard, it is declared lost.
func (r *Registry) Expect(of *KeptSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.nodes[of.Node]
	if e == nil {
		e = &entry{Record: Record{Name: of.Node, Shared: of.Shared, State: Lost}}
		r.nodes[of.Node] = e
	}
	if e.heard.IsZero() {
		e.Boot, e.Epoch = max(e.Boot, of.Boot), max(e.Epoch, of.Epoch)
	}
}

// Only has the Registry watch one node and no others: that of a client which has found its place.
func (r *Registry) Only(a link.Address) error {
	r.mu.Lock()
	stops := r.stops
	r.stops, r.only = nil, a.Node
	r.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	stop, err := r.conn.Subscribe(a.Scope.Life(a.Node), r.hear)
	if err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stops = append(r.stops, stop)
	return nil
}

// Nodes returns the nodes by name, those that are lost as well.
func (r *Registry) Nodes() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Record
	for _, e := range r.nodes {
		of := e.Record
		if !e.alive() {
			of.State = Lost
		}
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b Record) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Find returns a node that is alive, or draining.
func (r *Registry) Find(name string) (Record, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.nodes[name]
	if e == nil || !e.alive() {
		return Record{}, false
	}
	return e.Record, true
}

// IsLost reports whether what a node had in an epoch of a boot is lost; known is false where there is nothing
// of the node: it has left.
func (r *Registry) IsLost(name string, boot, epoch uint64) (lost, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.nodes[name]
	if e == nil {
		return false, false
	}
	return e.isLost(boot, epoch), true
}

// hasLeft reports whether the node of a session has left with it, and has come back. Of a shared node that is
// not known: what it had in an account is kept there by those who declare it lost.
func (r *Registry) hasLeft(k *KeptSession) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.nodes[k.Node]
	return e != nil && !e.Shared && !k.Shared && k.Boot < e.Boot && k.Epoch > e.lost
}

// Close ends the watch.
func (r *Registry) Close() {
	r.end()
	r.mu.Lock()
	stops := r.stops
	r.stops = nil
	r.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	r.work.Wait()
}

// Like returns the whole record of a node that a session could be placed on, whether or not it has a free
// slot. The error is ErrNoNode.
func (r *Registry) Like(need Need) (Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.nodes {
		if e.alive() && e.State == Ready && e.Info != nil && e.matches(need.Labels) &&
			Enforces(e.Level, need.Level) {
			return e.Record, nil
		}
	}
	return Record{}, need.none()
}
