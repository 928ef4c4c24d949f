// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// Times and sizes that a client cannot exceed. Those of HTTP heads are in head.go.
const (
	headTime    = 10 * time.Second       // for the first byte, a head, and a SOCKS5 request
	keepTime    = 5 * time.Minute        // between two requests on one connection
	idleTime    = time.Hour              // without a byte, in a tunnel or a body
	resolveTime = 5 * time.Second        // for all tries
	dialTime    = 10 * time.Second       // for all addresses
	nextTime    = 250 * time.Millisecond // until the next address is tried beside the first
	helloTime   = 3 * time.Second        // for the first message of TLS, once it has begun
	answerTime  = 10 * time.Second       // for a client to take an answer of ours
	lingerTime  = time.Second            // for a client to stop sending after its last answer
	retryTime   = 100 * time.Millisecond // after a connection could not be accepted

	commandConns = 256
	processConns = 4096
)

// Resolver looks names up. It is an interface so that tests have names of their own.
type Resolver interface {
	// LookupNetIP is that of [net.Resolver]; network is "ip".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Proxy is what the commands of one process share. The zero Proxy is ready to use. Its fields must
// not change once Serve was called; it must not be copied then.
type Proxy struct {
	// Resolver is asked for the addresses of names that the policy allows. Nil is the resolver
	// of the system.
	Resolver Resolver
	// Dial connects to an address, which the policy has vetted. Its Dialer must be used: its
	// Control vets the address again. Nil calls d.DialContext.
	Dial func(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error)
	// ListenUDP opens the socket from which the datagrams of a UDP association are sent. Nil
	// opens one on all interfaces and any port.
	ListenUDP func() (net.PacketConn, error)
	// UpstreamRoots are the certificates by which upstream proxies are known that speak TLS. Nil
	// means those of the system.
	UpstreamRoots *x509.CertPool
	// CommandConns and ProcessConns limit the open connections of one command and of all. Zero
	// means 256 and 4096. What is above waits to be accepted.
	CommandConns, ProcessConns int

	once   sync.Once
	slots  chan struct{}
	places places
}

// Command is one command's access to the network: everything that a decision or a record needs.
type Command struct {
	CallID, EnvironmentID string // for answers and records; may be empty
	// Policy returns the policy of now. It is called for each request; nil, or a nil policy,
	// refuses all.
	Policy func() *network.Policy
	// Ask decides about a request for which the policy says Ask. It blocks until there is a
	// decision; ctx ends when the client goes away or the Service is closed. What it returns
	// other than Allow denies. Nil denies.
	Ask func(ctx context.Context, r network.Request) network.Decision
	// Report is told what was decided, and which connections ended. The calls are made one after
	// the other, in the order of the events, and must not block. Nil means that nothing is told.
	Report func(Event)
	// PacketListener opens a UDP socket that the command can send to. Nil means that there is
	// none: UDP ASSOCIATE is refused.
	PacketListener func() (net.PacketConn, error)
	// Inside connects to what the command itself serves, where a host leads to its own loopback interface. It
	// returns nil without an error for other hosts, and where the policy is to answer. Nil is for a command
	// that has none. What it reaches is the command's own, so no policy judges it but entries that deny.
	Inside func(h network.Host, port uint16) (net.Conn, error)
	// Rewriter changes requests inside TLS, and their responses. Nil changes nothing.
	Rewriter Rewriter
}

// Service is a listener that is served. [Service.Close] ends it.
type Service struct {
	proxy    *Proxy
	command  *Command
	listener net.Listener
	origin   Origin // nil for clients that know of the proxy

	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}
	group  sync.WaitGroup

	mu    sync.Mutex         // guards open
	open  map[closer]*access // with the request that a connection to a server is for; nil for others
	tells sync.Mutex         // held while Report is called
}

// closer is a connection or a socket that ends with the Service.
type closer interface{ Close() error }

// Serve accepts connections from l for a command until the Service is closed, and returns at
// once. The Service owns l. A connection is served only if it is one of the command: everything
// that can reach l has the command's access.
func (p *Proxy) Serve(l net.Listener, c *Command) *Service { return p.start(l, c, nil) }

func (p *Proxy) start(l net.Listener, c *Command, origin Origin) *Service {
	p.once.Do(func() { p.slots = make(chan struct{}, orDefault(p.ProcessConns, processConns)) })
	s := &Service{
		proxy: p, command: c, listener: l, origin: origin,
		slots: make(chan struct{}, orDefault(p.CommandConns, commandConns)),
		open:  map[closer]*access{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.group.Go(s.accept)
	return s
}

func orDefault(n, zero int) int {
	if n == 0 {
		return zero
	}
	return n
}

// Close ends the listener and all connections, and returns when everything about them was
// reported and no goroutine is left. It can be called more than once. The error is that of closing
// the listener.
func (s *Service) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.group.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// hold has a connection end with the Service, and with the permission of the request that it is for;
// nil for one of the client. It is false, and the connection closed, if that has ended.
func (s *Service) hold(c closer, a *access) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a != nil && !a.stands(s.policy()) { // it has changed since the request was decided
		a.revoked.Store(true)
	}
	if s.ctx.Err() != nil || a != nil && a.revoked.Load() {
		_ = c.Close()
		return false
	}
	s.open[c] = a
	return true
}

// Recheck ends the connections that the policy does not allow any more. It is to be called when the
// policy has changed.
func (s *Service) Recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	policy := s.policy()
	for c, a := range s.open {
		if a != nil && !a.stands(policy) {
			a.revoked.Store(true)
			_ = c.Close()
		}
	}
}

// drop closes a connection that was held.
func (s *Service) drop(c closer) {
	_ = c.Close()
	s.mu.Lock()
	delete(s.open, c)
	s.mu.Unlock()
}

// accept takes connections while there is a slot for them. One that finds none stays with the
// kernel, so a burst waits and loses nothing.
func (s *Service) accept() {
	for s.take(s.slots) {
		conn, err := s.listener.Accept()
		if err != nil {
			<-s.slots
			if errors.Is(err, net.ErrClosed) || !s.pause() {
				return
			}
			continue
		}
		if !s.hold(conn, nil) {
			return
		}
		if !s.take(s.proxy.slots) {
			s.drop(conn)
			return
		}
		s.group.Go(func() {
			defer func() { <-s.slots; <-s.proxy.slots }()
			defer s.drop(conn)
			newClient(s, conn).serve()
		})
	}
}

// take waits for a slot. It is false when the Service has ended.
func (s *Service) take(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// pause waits after a connection could not be accepted, for example because descriptors are used
// up, which no event tells the end of. It is false when the Service has ended.
func (s *Service) pause() bool {
	timer := time.NewTimer(retryTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}
