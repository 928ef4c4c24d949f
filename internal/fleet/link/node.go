// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

const (
	// pingInterval is how often a node looks whether each of its clients is there; silence for deadTime ends
	// the links of one.
	pingInterval = 4 * time.Second
	deadTime     = 15 * time.Second
	// maxLinks and maxCalls are how many one account has at a node at once; maxCall is how long a call may
	// be.
	maxLinks = 16384
	maxCalls = 4096
	maxCall  = 8 << 10
)

// A Handler performs what clients of a node ask for. Its functions have goroutines of their own.
type Handler struct {
	// Open serves a link, and closes it. Open is what the client said of it.
	Open func(p Peer, open json.RawMessage, l *Link)
	// Call performs a call; a *CallError is told as it is. Nil as the result of a call to all nodes is no
	// answer.
	Call func(ctx context.Context, p Peer, method string, params json.RawMessage) (result any, err error)
}

// A Node is the end of the links to one node. Make one with NewNode.
type Node struct {
	transport Transport
	scope     Scope
	name      string
	handler   Handler
	life      context.Context
	end       context.CancelFunc
	stops     []func()
	work      sync.WaitGroup

	mu     sync.Mutex
	closed bool
	links  map[Peer]*peerLinks
	count  map[string]int // of links, by account
	calls  map[string]int
	late   lateCloses
}

// peerLinks are those of one client.
type peerLinks struct {
	by    map[uint64]*Link
	heard time.Time
	pongs map[chan struct{}]struct{} // closed when something of the client arrives
}

// NewNode returns a Node, which serves until Close.
func NewNode(t Transport, scope Scope, name string, h Handler) (*Node, error) {
	n := &Node{transport: t, scope: scope, name: name, handler: h, links: make(map[Peer]*peerLinks),
		count: make(map[string]int), calls: make(map[string]int)}
	n.life, n.end = context.WithCancel(context.Background())
	for _, subject := range scope.served(name) {
		stop, err := t.Subscribe(subject, n.receive)
		if err != nil {
			n.Close()
			return nil, err //nolint:wrapcheck // it says what failed
		}
		n.stops = append(n.stops, stop)
	}
	n.stops = append(n.stops, t.OnCut(func() { go n.endLinks(func(Peer) bool { return true }, errCut) },
		func() { go n.late.send(t) }))
	n.work.Go(n.watch)
	return n, nil
}

// receive takes what a client sends.
func (n *Node) receive(subject string, data []byte) {
	p, ok := n.scope.peer(subject)
	f, err := decodeFrame(data)
	if !ok || err != nil {
		return
	}
	n.mu.Lock()
	of := n.links[p]
	var l *Link
	if of != nil {
		of.heard = time.Now()
		for c := range of.pongs {
			close(c)
		}
		clear(of.pongs)
		l = of.by[f.channel]
	}
	n.mu.Unlock()
	switch {
	case f.kind == kindCall:
		n.call(p, f)
	case f.kind == kindOpen && l == nil:
		n.open(p, f)
	case l != nil:
		l.receive(f)
	case f.kind == kindData || f.kind == kindCredit:
		n.refuse(p, f.channel, "no such link")
	}
}

func (n *Node) refuse(p Peer, channel uint64, why string) {
	_ = n.send(p, frame{kindClose, channel, []byte(why)}) // the client asks again
}

func (n *Node) send(p Peer, f frame) error { return n.publish(p, f.kind, f.append(nil)) }

// publish sends a frame. One that ends a link is sent later if it cannot be sent now.
func (n *Node) publish(p Peer, k kind, data []byte) error {
	subject := n.scope.down(p, n.name)
	err := n.transport.Publish(subject, data)
	if err != nil && k == kindClose {
		n.late.add(subject, data)
	}
	return err //nolint:wrapcheck // links say that they were cut
}

func (n *Node) window() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := 0
	for _, links := range n.count {
		all += links
	}
	return window(all)
}

// open begins a link.
func (n *Node) open(p Peer, f frame) {
	l := newLink(f.channel, func(k kind, data []byte) error { return n.publish(p, k, data) }, n.window,
		func() { n.remove(p, f.channel) })
	n.mu.Lock()
	fits := !n.closed && n.count[p.Account] < maxLinks
	if fits {
		of := n.links[p]
		if of == nil {
			of = &peerLinks{by: make(map[uint64]*Link), heard: time.Now(),
				pongs: make(map[chan struct{}]struct{})}
			n.links[p] = of
		}
		of.by[f.channel] = l
		n.count[p.Account]++
		n.work.Add(1)
	}
	n.mu.Unlock()
	if !fits {
		n.refuse(p, f.channel, "the node takes no more links")
		return
	}
	go func() {
		defer n.work.Done()
		defer l.Close() //nolint:errcheck // it has no error
		n.handler.Open(p, f.body, l)
	}()
}

// remove forgets a link.
func (n *Node) remove(p Peer, channel uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := n.links[p]
	if of == nil || of.by[channel] == nil {
		return
	}
	delete(of.by, channel)
	if n.count[p.Account]--; n.count[p.Account] == 0 {
		delete(n.count, p.Account)
	}
	if len(of.by) == 0 {
		for c := range of.pongs {
			close(c)
		}
		delete(n.links, p)
	}
}

// call performs a call.
func (n *Node) call(p Peer, f frame) {
	n.mu.Lock()
	fits := !n.closed && n.calls[p.Account] < maxCalls && len(f.body) <= maxCall
	if fits {
		n.calls[p.Account]++
		n.work.Add(1)
	}
	n.mu.Unlock()
	if !fits { // who waits for the answer has a time
		return
	}
	go func() {
		defer n.work.Done()
		n.perform(p, f)
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.calls[p.Account]--; n.calls[p.Account] == 0 {
			delete(n.calls, p.Account)
		}
	}()
}

func (n *Node) perform(p Peer, f frame) {
	var asked call
	if json.Unmarshal(f.body, &asked) != nil {
		return
	}
	result, err := n.handler.Call(n.life, p, asked.Method, asked.Params)
	var a answer
	if err != nil && !errors.As(err, &a.Error) {
		a.Error = &CallError{Reason: "failed", Message: err.Error()}
	}
	if err == nil {
		if result == nil {
			return
		}
		a.Result, _ = json.Marshal(result) // values of ours
	}
	body, _ := json.Marshal(a)
	_ = n.send(p, frame{kindAnswer, f.channel, body}) // the client asks again
}

// watch ends the links of clients that are not there any more.
func (n *Node) watch() {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-n.life.Done():
			return
		}
		var dead []Peer
		n.mu.Lock()
		for p, of := range n.links {
			if time.Since(of.heard) > deadTime {
				dead = append(dead, p)
			} else {
				n.ping(p, of)
			}
		}
		n.mu.Unlock()
		for _, p := range dead {
			n.endLinks(func(other Peer) bool { return other == p }, cut("the client does not answer"))
		}
	}
}

// ping asks a client whether it is there. The caller holds mu.
func (n *Node) ping(p Peer, of *peerLinks) {
	for channel := range of.by {
		_ = n.send(p, frame{kind: kindPing, channel: channel}) // it is asked again
		return
	}
}

// Replace ends a link, for which another one has come, if its client is the one of the new link or does not
// answer within a time. It reports whether it did.
func (n *Node) Replace(old *Link, by Peer, within time.Duration) bool {
	n.mu.Lock()
	var holder Peer
	found := false
	for p, of := range n.links {
		for _, l := range of.by {
			if l == old {
				holder, found = p, true
			}
		}
	}
	answered := make(chan struct{})
	if found && holder != by {
		of := n.links[holder]
		of.pongs[answered] = struct{}{}
		n.ping(holder, of)
	}
	n.mu.Unlock()
	if found && holder != by {
		timer := time.NewTimer(within)
		defer timer.Stop()
		select {
		case <-answered:
			if old.Err() == nil {
				return false
			}
		case <-timer.C:
		}
	}
	old.end(cut("another connection took over"), true)
	return true
}

func (n *Node) endLinks(match func(Peer) bool, why error) {
	n.mu.Lock()
	var links []*Link
	for p, of := range n.links {
		if match(p) {
			for _, l := range of.by {
				links = append(links, l)
			}
		}
	}
	n.mu.Unlock()
	for _, l := range links {
		l.end(why, true)
	}
}

// Close ends all links and calls, and waits for them.
func (n *Node) Close() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.end()
	for _, stop := range n.stops {
		stop()
	}
	n.endLinks(func(Peer) bool { return true }, cut("the node has ended"))
	n.work.Wait()
}
