// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node offers a machine to a fleet: an exec-server whose connections are links. A node alone knows
// which of its slots are free, and which sessions it has.
package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// Options say what a node offers.
type Options struct {
	Name    string // a token of a subject
	Labels  map[string]string
	Slots   int // how many processes and runs live at once; at least 1
	Level   string
	Version string
	// Shared has the node serve all tenants, with credentials of the account of shared nodes. It never runs
	// anything without a sandbox then.
	Shared bool
	// Server is the exec-server, without what the node sets: Admit, RunPrefix and bounds.
	Server execserver.Options
}

// ErrLiving says that another node has the name.
var ErrLiving = errors.New("a node with this name is alive")

// ErrReplaced says that a node has ended since another one has its name now: it was taken for dead.
var ErrReplaced = errors.New("another node has this name now, as this one was not heard for too long; " +
	"give one of them another --name")

// reserveTime is how long a slot is reserved for a session that has not started anything.
const reserveTime = 10 * time.Second

// A Node serves until it is drained, or Close. Make one with Start.
type Node struct {
	opts   Options
	conn   *bus.Conn
	kept   *bus.Bucket
	links  *link.Node
	server *execserver.Server
	life   context.Context
	end    context.CancelFunc
	work   sync.WaitGroup
	left   chan struct{} // closed when it has left
	change chan struct{} // has a value when the record has changed

	mu       sync.Mutex
	record   fleet.Record
	used     int                     // slots, without reservations
	clients  int                     // of sessions; they may not know yet how what has ended ended
	reserved map[string]*reservation // by session
	sessions map[string]*attached
	fenced   map[string]uint64 // the highest epoch that was fenced, by account
	idle     chan struct{}     // closed when no slot is used; nil unless a drain waits
	leaving  bool
	replaced bool // by another node of this name

	saying sync.Mutex // held while the record is told, so that older ones come first
}

// A reservation is a slot that is held for a session of an account, until its time is over.
type reservation struct {
	*time.Timer
	account string
}

// An attached is a session with a link.
type attached struct {
	link  *link.Link
	epoch uint64
	done  chan struct{} // closed when the server has left the link
}

// Start offers this machine. It blocks until the name is known to be free. The error ErrLiving says that it
// is not. The caller must call Close.
func Start(ctx context.Context, conn *bus.Conn, o Options) (*Node, error) {
	n := &Node{opts: o, conn: conn, left: make(chan struct{}), change: make(chan struct{}, 1),
		reserved: make(map[string]*reservation), sessions: make(map[string]*attached),
		fenced: make(map[string]uint64)}
	n.life, n.end = context.WithCancel(context.Background())
	var err error
	if n.kept, err = conn.Bucket(ctx, "nodes", 0); err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	n.record = fleet.Record{Name: o.Name, Labels: o.Labels, Slots: o.Slots, Free: o.Slots, Level: o.Level,
		Version: o.Version, State: fleet.Ready, SinceMs: time.Now().UnixMilli(), Instance: rand.Text(),
		Shared: o.Shared}
	if err := n.register(ctx); err != nil {
		return nil, err
	}
	s := o.Server
	s.Admit, s.RunPrefix, s.Group = n.admit, n.record.RunPrefix(), account
	s.MaxRuns, s.MaxDetached, s.RequireSandbox = o.Slots, maxDetached, s.RequireSandbox || o.Shared
	n.server = execserver.New(s)
	n.links, err = link.NewNode(conn, n.record.Address().Scope, o.Name, link.Handler{Open: n.open, Call: n.call})
	if err != nil {
		return nil, errors.Join(err, n.server.Close())
	}
	stop := conn.OnCut(n.cut, func() { n.work.Go(n.check) })
	deaf, err := conn.Subscribe(n.record.Address().Scope.Life(o.Name), n.hear)
	if err == nil {
		err = conn.Check(ctx) // the hub knows then what the node listens to
	}
	if err != nil {
		stop()
		n.links.Close()
		return nil, errors.Join(err, n.server.Close())
	}
	n.work.Go(func() {
		defer stop()
		defer deaf()
		n.beat()
	})
	return n, nil
}

// hear takes what another node of this name says: it does not hear itself.
func (n *Node) hear(_ string, life []byte) {
	var of fleet.Record
	if fleet.ReadLife(life, &of) && of.Boot > n.Record().Boot && n.life.Err() == nil {
		n.work.Go(n.giveWay)
	}
}

// giveWay ends the node for another one of its name.
func (n *Node) giveWay() {
	n.mu.Lock()
	first := !n.replaced
	n.replaced = true
	n.mu.Unlock()
	if first {
		n.links.Close()                   // what is sent to the name is for the other one
		_ = n.leave(context.Background()) // Err says more
	}
}

// maxDetached is how many sessions without a client are kept: those of all tenants.
const maxDetached = 4096

// register takes the name: it waits whether a node is heard that has it, and then counts the boot.
func (n *Node) register(ctx context.Context) error {
	heard := make(chan struct{}, 1)
	stop, err := n.conn.Subscribe(n.record.Address().Scope.Life(n.opts.Name), func(string, []byte) {
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err //nolint:wrapcheck // it says what failed
	}
	defer stop()
	for {
		var k fleet.Kept
		value, revision, err := n.kept.Get(ctx, n.opts.Name)
		switch {
		case errors.Is(err, bus.ErrNoKey):
			revision = 0
		case err != nil:
			return err //nolint:wrapcheck // it says what failed
		case json.Unmarshal(value, &k) != nil:
			return fmt.Errorf("the hub keeps a damaged record of the node %s", n.opts.Name)
		case k.Record.State == fleet.Left: // no node has the name
		default:
			timer := time.NewTimer(fleet.Lease)
			select {
			case <-heard:
				return fmt.Errorf("%w: %s; give this one another --name, or end that one first", ErrLiving,
					n.opts.Name)
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-timer.C:
			}
		}
		last := max(k.Boot, k.Lost, k.Record.Epoch)
		n.record.Boot, n.record.Epoch = last+1, last+1
		if k.Record.State != fleet.Left {
			k.Lost = last // what the last one had, which has not ended it
		}
		k.Boot, k.Record = last+1, n.record
		text, _ := json.Marshal(k) // it always encodes
		err = n.kept.Update(ctx, n.opts.Name, text, revision)
		if !errors.Is(err, bus.ErrChanged) {
			return err //nolint:wrapcheck // it says what failed
		}
	}
}

// beat says that the node lives, at each change and again and again.
func (n *Node) beat() {
	ticker := time.NewTicker(fleet.LifeInterval)
	defer ticker.Stop()
	for {
		n.say()
		select {
		case <-ticker.C:
		case <-n.change:
		case <-n.life.Done():
			return
		}
	}
}

// cut counts that the connection was cut.
func (n *Node) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.record.Cuts++
}

func (n *Node) say() {
	n.saying.Lock()
	defer n.saying.Unlock()
	r := n.Record()
	_ = n.conn.Publish(r.Address().Scope.Life(r.Name), r.Life()) // the next one follows
}

// Record returns what the node says of itself.
func (n *Node) Record() fleet.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.record
	r.Free = n.free()
	return r
}

// free returns how many slots are free. The caller holds mu.
func (n *Node) free() int { return max(n.opts.Slots-n.busy(), 0) }

// busy returns how many slots are used or reserved. The caller holds mu.
func (n *Node) busy() int { return n.used + len(n.reserved) }

// isIdle reports whether no session is running. The caller holds mu.
func (n *Node) isIdle() bool { return n.busy() == 0 && n.clients == 0 }

// changed has the change be told. The caller holds mu.
func (n *Node) changed() {
	if n.busy() == 0 && n.idle != nil {
		close(n.idle)
		n.idle = nil
	}
	select {
	case n.change <- struct{}{}:
	default: // it will be
	}
}

// admit takes a slot for something that a session starts.
func (n *Node) admit(session string) (leave func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.reserved[session]; t != nil {
		t.Stop()
		delete(n.reserved, session)
	} else if n.free() == 0 || n.leaving {
		return nil, noSlot()
	}
	n.used++
	n.changed()
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.used--
		n.changed()
	}), nil
}

// reserve holds a slot for a session.
func (n *Node) reserve(p link.Peer, r fleet.Reserve) fleet.Reserved {
	n.mu.Lock()
	a := n.sessions[key(p, r.Session)]
	n.mu.Unlock()
	if a != nil && a.link.Err() != nil { // who asks has not heard that the session is there
		<-a.done
		_ = n.kill(p, fleet.Kill{Session: r.Session, Unused: true}) // it may have ended
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	free := n.free()
	ok := n.record.State == fleet.Ready && free > 0 && free >= r.Free &&
		fleet.Enforces(n.opts.Level, r.Level) && bus.Token(r.Session) && n.sessions[key(p, r.Session)] == nil
	if t := n.reserved[r.Session]; t != nil { // who asks has not waited for the answer
		ok = t.account == p.Account && t.Stop()
	}
	if ok {
		t := &reservation{account: p.Account}
		t.Timer = time.AfterFunc(reserveTime, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.reserved[r.Session] == t { // it may just have been used, and reserved again
				delete(n.reserved, r.Session)
				n.changed()
			}
		})
		n.reserved[r.Session] = t
		n.changed()
	}
	record := n.record
	record.Free = n.free()
	return fleet.Reserved{OK: ok, Record: record}
}

// key names a session of an account in Node.sessions.
func key(p link.Peer, session string) string { return p.Account + "/" + session }

// maxCredential is how many bytes a client's credential has at most: the server keeps it with each session.
const maxCredential = 4096

// owner returns the credential of a client of an account at the exec-server.
func owner(p link.Peer, credential string) string { return p.Account + "/" + credential }

// account is that of a credential.
func account(credential string) string {
	of, _, _ := strings.Cut(credential, "/")
	return of
}

// owns reports whether a credential is one of the account.
func owns(p link.Peer, credential string) bool { return strings.HasPrefix(credential, p.Account+"/") }

// sidePrefix begins the IDs of sessions that gateways have for lists and runs of others.
const sidePrefix = "side-"

// open serves a link.
func (n *Node) open(p link.Peer, text json.RawMessage, l *link.Link) {
	var o fleet.Opening
	if json.Unmarshal(text, &o) != nil || o.Session != "" && !bus.Token(o.Session) ||
		len(o.Credential) > maxCredential {
		l.Cut("a link that is opened in a wrong form")
		return
	}
	session := o.Session
	if session == "" {
		session = sidePrefix + rand.Text()
	}
	key := key(p, session)
	this := &attached{link: l, epoch: o.Epoch, done: make(chan struct{})}
	n.mu.Lock()
	old := n.sessions[key]
	if old != nil {
		this.epoch = old.epoch
	} else if o.Epoch == 0 || o.Epoch > n.record.Epoch { // it begins now, whatever the client says
		this.epoch = n.record.Epoch
	}
	// One that was kept is asked for without an epoch. One that comes after the fence of its epoch is lost to
	// others.
	stale := o.Epoch != 0 && (o.Epoch < n.record.Boot || o.Epoch <= n.fenced[p.Account])
	leaving := n.leaving
	n.mu.Unlock()
	switch {
	case stale:
		l.Cut("the session was lost with an earlier epoch of the node")
		return
	case leaving:
		<-n.left // what has become of the session is known then
		l.Cut("the node has left")
		return
	}
	if o.Observes {
		_ = n.server.ServeSession(l, owner(p, o.Credential), session) // the client sees the end
		return
	}
	const moment = 500 * time.Millisecond
	if old != nil && !o.TakesOver && n.links.Replace(old.link, p, moment) {
		<-old.done
	}
	n.mu.Lock()
	n.sessions[key] = this
	if o.Session != "" {
		n.clients++
	}
	n.mu.Unlock()
	_ = n.server.ServeSession(l, owner(p, o.Credential), session) // the client sees the end
	close(this.done)
	if o.Session != "" {
		n.mu.Lock()
		n.clients--
		n.changed()
		n.mu.Unlock()
	}
	n.forget()
}

// forget forgets the sessions that the server does not have any more.
func (n *Node) forget() {
	known := make(map[string]bool)
	for _, s := range n.server.Sessions() {
		known[account(s.Credential)+"/"+s.ID] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for key, a := range n.sessions {
		select {
		case <-a.done:
			if !known[key] {
				delete(n.sessions, key)
			}
		default:
		}
	}
}

// Left is closed when the node has left: it was drained, or ErrReplaced.
func (n *Node) Left() <-chan struct{} { return n.left }

// Err returns why a node has left that was not drained; else it is nil.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.replaced {
		return ErrReplaced
	}
	return nil
}

// Close ends what runs and leaves, so that the node is not lost but gone.
func (n *Node) Close(ctx context.Context) error {
	err := n.leave(ctx)
	n.end()
	n.links.Close()
	n.work.Wait()
	return errors.Join(err, n.server.Close())
}

// leave ends what runs, and has everybody forget the node.
func (n *Node) leave(ctx context.Context) error {
	n.mu.Lock()
	first := !n.leaving
	n.leaving = true
	if n.record.State == fleet.Ready {
		n.record.State = fleet.Draining
	}
	n.changed()
	n.mu.Unlock()
	if !first {
		<-n.left
		return nil
	}
	err := n.server.Shutdown(ctx)
	n.mu.Lock()
	n.record.State = fleet.Left
	n.mu.Unlock()
	n.say()
	if n.conn.For() > 0 && n.Err() == nil { // else it is declared lost, or the hub keeps the other one
		// The next one with the name counts on: what this one had is not the next one's.
		err = errors.Join(err, n.keep())
	}
	close(n.left)
	return err
}
