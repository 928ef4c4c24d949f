// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

const (
	// defaultClients is how many clients are served at once.
	defaultClients = 512
	// requestTime is how long a client may take to send its request and to take an answer that is
	// no WebSocket.
	requestTime = 10 * time.Second
	// maxHead is the largest head of a request in bytes, about.
	maxHead = 32 << 10
)

// A handler answers the HTTP requests of a listener.
type handler struct {
	served  Gateway
	gate    gate
	slots   chan struct{}    // holds a value for each client
	busy    func(change int) // is told of each client
	penalty penalty
	closed  atomic.Bool // no client is let in any more
}

// newDoor returns the handler of a listener that has at most so many clients at once.
func newDoor(served Gateway, g gate, clients int) *handler {
	return &handler{served: served, gate: g, slots: make(chan struct{}, clients), busy: func(int) {},
		penalty: newPenalty(maxOpen(clients))}
}

// http returns an HTTP server of the handler. Its times end with the upgrade to a WebSocket: until
// then, a client that sends its request slowly, or not the body that it announced, is cut.
func (d *handler) http() *http.Server {
	return &http.Server{
		Handler: d, MaxHeaderBytes: maxHead,
		ReadHeaderTimeout: requestTime, ReadTimeout: requestTime, WriteTimeout: requestTime,
		IdleTimeout: requestTime,
	}
}

// open serves a listener. What ends that too early is sent; end ends it, and the server, as
// [Gateway] Shutdown does, and returns when no client is served. It is called once.
func (d *handler) open(l net.Listener) (failed <-chan error, end func(hurry context.Context) error) {
	h := d.http()
	over := make(chan error, 1)
	go func() { over <- h.Serve(l) }()
	return over, func(hurry context.Context) error {
		d.close()
		_ = l.Close() // there may be a next server for it
		err := d.served.Shutdown(hurry)
		_ = h.Close() // clients that were let in are connections of the server
		d.wait()
		return err
	}
}

// close lets in no client any more, and says so to who asks.
func (d *handler) close() { d.closed.Store(true) }

// wait waits until no client is served. None is let in afterwards. It is called once.
func (d *handler) wait() {
	d.penalty.end()
	for range cap(d.slots) {
		d.slots <- struct{}{}
	}
}

// ServeHTTP implements http.Handler.
func (d *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch _, browser := r.Header["Origin"]; {
	case browser:
		// A page in a browser can open a WebSocket to any address, also to this machine. It
		// cannot leave out this header, and other clients do not send it.
		http.Error(w, "requests of web pages are not allowed", http.StatusForbidden)
	case r.URL.Path == "/readyz" && r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case d.closed.Load():
		w.Header().Set("Connection", "close")
		http.Error(w, "the server is closing", http.StatusServiceUnavailable)
	case r.URL.Path == "/readyz":
		w.WriteHeader(http.StatusOK)
	case r.URL.Path != "/":
		http.NotFound(w, r)
	default:
		d.connect(w, r)
	}
}

// connect lets a client in and serves it.
func (d *handler) connect(w http.ResponseWriter, r *http.Request) {
	credential, err := d.gate(r)
	if err != nil {
		if !errors.Is(err, errNoBearer) { // who sends no token guesses none
			d.penalty.wait()
		}
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		http.Error(w, "a WebSocket is served here", http.StatusBadRequest)
		return
	}
	leave := d.enter()
	if leave == nil {
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	stream, err := wire.Accept(w, r)
	if err != nil {
		return // the request was answered
	}
	_ = d.served.Serve(stream, credential, r.URL.Query()) // there is no client left that wants to know
}

// enter counts a client until leave; leave is nil where there are too many.
func (d *handler) enter() (leave func()) {
	select {
	case d.slots <- struct{}{}:
		d.busy(1)
		return func() {
			d.busy(-1)
			<-d.slots
		}
	default:
		return nil
	}
}
