// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// A Demux divides the sockets of a shared sandbox among its commands: each gets the connections and the
// questions about names that come from its own processes, and those of which that is not known go to
// a service of the sandbox. A command that is the only one has made all of them.
type Demux struct {
	// Holders returns which of some trees of processes have a socket with a local port: those that may
	// have made a connection.
	Holders func(trees [][]int, udp bool, port uint16) []int

	sockets *Sockets
	serving sync.WaitGroup

	mu      sync.Mutex
	ready   sync.Cond // of mu: a member has its processes, or is gone
	members []*CommandSockets
	rest    *CommandSockets // gets what is not known
	over    chan struct{}   // closed by Close
}

// A CommandSockets is one command of a Demux.
type CommandSockets struct {
	demux     *Demux
	processes func() []int // nil until it is known
	proxy     *demuxListener
	led       []*demuxListener // one for each of Sockets.Redirected
	names     []*nameQuestions
}

// NewDemux begins to divide sockets, which the Demux owns. Close ends it.
func NewDemux(sockets *Sockets, holders func([][]int, bool, uint16) []int) *Demux {
	h := &Demux{Holders: holders, sockets: sockets, over: make(chan struct{})}
	h.ready.L = &h.mu
	h.rest = h.newMember()
	if sockets.Datagrams != nil {
		_ = sockets.Datagrams.Close() // nothing says which command has sent what arrives there
		sockets.Datagrams = nil
	}
	if sockets.Proxy != nil {
		h.serving.Go(func() {
			h.accept(sockets.Proxy,
				func(m *CommandSockets) *demuxListener { return m.proxy })
		})
	}
	for i, l := range sockets.Redirected {
		h.serving.Go(func() { h.accept(l, func(m *CommandSockets) *demuxListener { return m.led[i] }) })
	}
	for i, c := range sockets.Names {
		h.serving.Go(func() { h.read(c, func(m *CommandSockets) *nameQuestions { return m.names[i] }) })
	}
	return h
}

func (h *Demux) newMember() *CommandSockets {
	m := &CommandSockets{demux: h}
	if h.sockets.Proxy != nil {
		m.proxy = newBranch(h.sockets.Proxy.Addr())
	}
	for _, l := range h.sockets.Redirected {
		m.led = append(m.led, newBranch(l.Addr()))
	}
	for _, c := range h.sockets.Names {
		m.names = append(m.names, newQuestions(c))
	}
	return m
}

// Join adds a command, before it starts. What it sends waits until Started says which its processes are.
func (h *Demux) Join() *CommandSockets {
	m := h.newMember()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members = append(h.members, m)
	return m
}

// Started says which processes the command has.
func (m *CommandSockets) Started(processes func() []int) {
	m.demux.mu.Lock()
	defer m.demux.mu.Unlock()
	m.processes = processes
	m.demux.ready.Broadcast()
}

// Leave removes the command. The nil Member does nothing.
func (m *CommandSockets) Leave() {
	if m == nil {
		return
	}
	h := m.demux
	h.mu.Lock()
	h.members = slices.DeleteFunc(h.members, func(o *CommandSockets) bool { return o == m })
	h.ready.Broadcast()
	h.mu.Unlock()
	m.sockets().Close()
}

// Rest returns the sockets of what is not known to be of a command.
func (h *Demux) Rest() *Sockets { return h.rest.sockets() }

// Sockets returns those of the command, for [Serve].
func (m *CommandSockets) Sockets() *Sockets { return m.sockets() }

func (m *CommandSockets) sockets() *Sockets {
	s := &Sockets{Routed: m.demux.sockets.Routed}
	if m.proxy != nil {
		s.Proxy = m.proxy
	}
	for _, b := range m.led {
		s.Redirected = append(s.Redirected, b)
	}
	for _, q := range m.names {
		s.Names = append(s.Names, q)
	}
	return s
}

// Close ends the Demux and everything that it has handed out.
func (h *Demux) Close() {
	h.mu.Lock()
	close(h.over)
	h.ready.Broadcast()
	h.mu.Unlock()
	h.sockets.Close()
	h.rest.sockets().Close()
	h.serving.Wait()
}

// owner returns the command that has a socket at a port of the sandbox.
func (h *Demux) owner(udp bool, from net.Addr) *CommandSockets {
	at, err := netip.ParseAddrPort(from.String())
	h.mu.Lock()
	// Who starts may have made it.
	for len(h.members) > 1 && !h.ended() && slices.ContainsFunc(h.members,
		func(m *CommandSockets) bool { return m.processes == nil }) {
		h.ready.Wait()
	}
	members := slices.Clone(h.members)
	h.mu.Unlock()
	switch {
	case len(members) == 1:
		return members[0]
	case len(members) == 0 || err != nil:
		return h.rest
	}
	trees := make([][]int, len(members))
	for i, m := range members {
		trees[i] = m.processes()
	}
	if found := h.Holders(trees, udp, at.Port()); len(found) == 1 {
		return members[found[0]]
	}
	return h.rest
}

// accept hands out the connections of one socket.
func (h *Demux) accept(l net.Listener, of func(*CommandSockets) *demuxListener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if h.ended() {
				return
			}
			// descriptors may be used up, which no event tells the end of
			const pause = 100 * time.Millisecond
			select {
			case <-time.After(pause):
			case <-h.over:
			}
			continue
		}
		of(h.owner(false, conn.RemoteAddr())).give(conn)
	}
}

func (h *Demux) ended() bool {
	select {
	case <-h.over:
		return true
	default:
		return false
	}
}

// read hands out the questions of one socket.
func (h *Demux) read(c net.PacketConn, of func(*CommandSockets) *nameQuestions) {
	const most = 4096 // bytes of a question
	b := make([]byte, most)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			if h.ended() {
				return
			}
			continue
		}
		of(h.owner(true, from)).give(slices.Clone(b[:n]), from)
	}
}

// A demuxListener is the listener of one command.
type demuxListener struct {
	addr  net.Addr
	conns chan net.Conn
	over  chan struct{}
	mu    sync.Mutex // held while something is put into conns, or over is closed
}

func newBranch(addr net.Addr) *demuxListener {
	// beyond what is served; further ones are closed, so that one command cannot hold up others
	const waiting = 512
	return &demuxListener{addr: addr, conns: make(chan net.Conn, waiting), over: make(chan struct{})}
}

// give hands a connection over, or closes it.
func (b *demuxListener) give(c net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.over:
	default:
		select {
		case b.conns <- c:
			return
		default:
		}
	}
	_ = c.Close()
}

// Accept implements [net.Listener].
func (b *demuxListener) Accept() (net.Conn, error) {
	select {
	case c := <-b.conns:
		return c, nil
	case <-b.over:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (b *demuxListener) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.over:
		return nil
	default:
	}
	close(b.over)
	for {
		select {
		case c := <-b.conns:
			_ = c.Close()
		default:
			return nil
		}
	}
}

// Addr implements [net.Listener].
func (b *demuxListener) Addr() net.Addr { return b.addr }

// nameQuestions is the socket for names of one command.
type nameQuestions struct {
	net.PacketConn // answers go there
	come           chan question
	over           chan struct{}
	once           sync.Once
}

type question struct {
	text []byte
	from net.Addr
}

func newQuestions(c net.PacketConn) *nameQuestions {
	const waiting = 64 // further ones are asked again by the client
	return &nameQuestions{PacketConn: c, come: make(chan question, waiting), over: make(chan struct{})}
}

func (q *nameQuestions) give(text []byte, from net.Addr) {
	select {
	case q.come <- question{text, from}:
	default:
	}
}

// ReadFrom implements [net.PacketConn].
func (q *nameQuestions) ReadFrom(p []byte) (int, net.Addr, error) {
	select {
	case one := <-q.come:
		return copy(p, one.text), one.from, nil
	case <-q.over:
		return 0, nil, os.ErrClosed
	}
}

// Close implements [net.PacketConn]. The socket stays open.
func (q *nameQuestions) Close() error {
	q.once.Do(func() { close(q.over) })
	return nil
}
