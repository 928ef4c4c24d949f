// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// Bounds of HTTP.
const (
	maxHead     = 32 << 10         // of the head of a request, in bytes
	maxBody     = 4 << 10          // of its body
	requestTime = 10 * time.Second // for both, and for an answer that is no WebSocket
	maxPages    = 64               // WebSockets at once
)

// TokenTime is how long a token can be exchanged.
const TokenTime = 10 * time.Minute

// A Method answers a request of a page in this process. An error that is a *wire.Error is sent as it is. Its
// context ends with the connection, and when the page cancels the request.
type Method func(ctx context.Context, params json.RawMessage) (any, error)

// Options say what a console serves. Dial must be set.
type Options struct {
	// Hosts are values of the header Host that are accepted beside the address of the listener. One without a
	// port stands for itself and for itself with the port of the listener.
	Hosts []string
	// TLS says that the listener encrypts.
	TLS bool
	// ViewOnly refuses what changes something.
	ViewOnly bool
	// FixedToken can be exchanged any number of times, also later; empty is none.
	FixedToken string
	// Scope is what secrets are for beside the address and ViewOnly, such as the URL of the exec-server.
	// Those of another scope are not accepted.
	Scope string
	// Dir is the directory in which hashes of the secrets outlive the process. It must be this user's alone.
	// Empty keeps them in memory only.
	Dir string
	// Dial connects to the exec-server. Each connection of a page has one of its own.
	Dial func(context.Context) (wire.Stream, error)
	// Methods are answered here, by their names; all others are relayed.
	Methods map[string]Method
	// Now returns the time; nil is time.Now.
	Now func() time.Time
}

// A Server is a console. It is made by New.
type Server struct {
	o     Options
	files map[string]file
	pages chan struct{} // holds a value for each WebSocket
	life  context.Context
	end   context.CancelFunc

	port    string // of the listener
	address string // with the port
	local   bool   // it is a loopback address

	secrets *secrets
	mu      sync.Mutex
	tokens  map[[32]byte]time.Time // by hash, with their ends
}

// New returns a console for a listener. The error is about Options.Dir.
func New(o Options, address net.Addr) (*Server, error) {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return nil, errors.New("a console needs a TCP port")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, files: pageFiles(), pages: make(chan struct{}, maxPages), address: tcp.String(),
		port: strconv.Itoa(tcp.Port), local: tcp.IP.IsLoopback(), tokens: map[[32]byte]time.Time{}}
	s.life, s.end = context.WithCancel(context.Background())
	var err error
	s.secrets, err = loadSecrets(o.Dir, purpose{s.address, o.ViewOnly, o.Scope}, o.Now)
	return s, err
}

// Token returns a new token, which can be exchanged once, within ten minutes.
func (s *Server) Token() string {
	token := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[hash(token)] = s.o.Now().Add(TokenTime)
	return token
}

// Serve serves a listener, whose address is that of New, until ctx ends or the listener fails. It closes the
// listener, and returns when no page is served any more, which are told that the console goes away.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler: s, MaxHeaderBytes: maxHead, ReadHeaderTimeout: requestTime, ReadTimeout: requestTime,
		WriteTimeout: requestTime, IdleTimeout: time.Minute, DisableGeneralOptionsHandler: true,
	}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() })
	err := h.Serve(l)
	stop()
	_ = h.Close() // connections that were upgraded are not its own any more
	s.end()
	for range cap(s.pages) {
		s.pages <- struct{}{} // none is let in any more
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil // ctx has ended
	}
	return err
}
