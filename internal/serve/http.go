// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net/http"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/execserver"
	"github.com/sallyport-dev/sallyport/internal/jsonrpc"
)

// maxConnections is how many clients are served at once.
const maxConnections = 512

// A door answers the HTTP requests of a listener.
type door struct {
	server *execserver.Server
	gate   gate
	slots  chan struct{}    // holds a value for each client
	busy   func(change int) // is told of each client
}

func newDoor(server *execserver.Server, g gate) *door {
	return &door{server: server, gate: g, slots: make(chan struct{}, maxConnections), busy: func(int) {}}
}

// wait waits until no client is served. None is let in afterwards.
func (d *door) wait() {
	for range cap(d.slots) {
		d.slots <- struct{}{}
	}
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch _, browser := r.Header["Origin"]; {
	case browser:
		// A page in a browser can open a WebSocket to any address, also to this machine. It
		// cannot leave out this header, and other clients do not send it.
		http.Error(w, "requests of web pages are not allowed", http.StatusForbidden)
	case r.URL.Path == "/readyz" && r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case r.URL.Path == "/readyz":
		w.WriteHeader(http.StatusOK)
	case r.URL.Path != "/":
		http.NotFound(w, r)
	default:
		d.connect(w, r)
	}
}

// connect lets a client in and serves it.
func (d *door) connect(w http.ResponseWriter, r *http.Request) {
	credential, err := d.gate(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		http.Error(w, "a WebSocket is served here", http.StatusBadRequest)
		return
	}
	select {
	case d.slots <- struct{}{}:
		d.busy(1)
		defer func() {
			d.busy(-1)
			<-d.slots
		}()
	default:
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	stream, err := jsonrpc.Accept(w, r)
	if err != nil {
		return // the request was answered
	}
	_ = d.server.Serve(stream, credential) // there is no client left that wants to know
}
