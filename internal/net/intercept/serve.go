// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/network"
)

// Bounds of one connection.
const (
	headTime     = 10 * time.Second // for a handshake and a head
	idleTime     = 5 * time.Minute  // between two requests
	headBytes    = 64 << 10
	serverConns  = 32 // to one server, for the requests of one client
	standardPort = 443
	flushAtOnce  = -1 // each write of the server goes to the client at once
)

// Rewriter is what a [proxy.Rewriter] must be for an Interceptor.
type Rewriter interface {
	proxy.Rewriter
	// Request may change a request to a host. The response is searched where the host is guarded, or gets a
	// credential. An error refuses it, and so does one of its body that is a [proxy.Misuse].
	Request(host network.Host, port uint16, guarded bool, r *http.Request) error
	// Response may change the response. An error takes its place, with its text, which must have nothing of
	// the response.
	Response(host network.Host, port uint16, guarded bool, r *http.Response) error
}

// Intercept implements [proxy.Interceptor].
func (i *Interceptor) Intercept(c *proxy.Intercepted) {
	defer func() { _ = c.Conn.Close() }()
	name := c.Host.String()
	toClient, err := i.serverConfig(name)
	if err != nil {
		return
	}
	toServer, err := i.clientConfig(name)
	if err != nil {
		return // Bundle has told it, before the command was started
	}
	s := &session{c: c, authority: authorityOf(c.Host, c.Port)}
	if c.Rewriter != nil {
		var ok bool
		if s.rewriter, ok = c.Rewriter.(Rewriter); !ok {
			return // closed: nothing passes that should have been changed
		}
	}
	s.transport = &http.Transport{
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return c.Dial() },
		TLSClientConfig: toServer, TLSHandshakeTimeout: headTime, ForceAttemptHTTP2: true,
		DisableCompression: true,
		MaxConnsPerHost:    serverConns, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: headBytes,
		ExpectContinueTimeout: time.Second,
	}
	defer s.transport.CloseIdleConnections()
	s.proxy = &httputil.ReverseProxy{
		Rewrite: s.rewrite, Transport: s.transport, FlushInterval: flushAtOnce,
		// what it would tell has texts of servers
		ModifyResponse: s.modify, ErrorHandler: s.failed,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	s.serve(toClient)
}

// authorityOf is the host with its port where that is not the usual one, as servers get it.
func authorityOf(host network.Host, port uint16) string {
	text := net.JoinHostPort(host.String(), strconv.Itoa(int(port)))
	if port == standardPort {
		text = text[:len(text)-len(":443")]
	}
	return text
}

// A session is one connection of a client.
type session struct {
	c         *proxy.Intercepted
	authority string
	rewriter  Rewriter // nil for none
	transport *http.Transport
	proxy     *httputil.ReverseProxy

	mu       sync.Mutex
	over     bool // no handler may begin
	handlers sync.WaitGroup
}

// serve serves the requests of the client until its connection ends, and waits for the last of them.
func (s *session) serve(config *tls.Config) {
	ended := make(chan struct{})
	conn := &watched{Conn: s.c.Conn, closed: sync.OnceFunc(func() { close(ended) })}
	ctx, cancel := context.WithCancel(s.c.Context)
	defer cancel()
	server := &http.Server{
		Handler: http.HandlerFunc(s.handle), TLSConfig: config, ReadHeaderTimeout: headTime,
		IdleTimeout:    idleTime,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		MaxHeaderBytes: headBytes, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	_ = server.Serve(&single{conn: tls.Server(conn, config), ended: ended})
	cancel()
	_ = server.Close()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.handlers.Wait()
}

// begin is false for a request that comes when the connection has ended.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.handlers.Add(1)
	}
	return !s.over
}

// A watched connection tells when it is closed.
type watched struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (w *watched) Close() error {
	err := w.Conn.Close()
	w.closed()
	return err
}

// A single is a listener for one connection, which ends when that does.
type single struct {
	conn  net.Conn // nil once it was accepted
	ended <-chan struct{}
}

// Accept implements net.Listener.
func (l *single) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

// Close implements net.Listener. The connection is not the listener's.
func (l *single) Close() error { return nil }

// Addr implements net.Listener.
func (l *single) Addr() net.Addr { return &net.TCPAddr{} }

// handle serves one request.
func (s *session) handle(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		return
	}
	defer s.handlers.Done()
	dropHops(r.Header) // before a rule sets what Connection could name
	inner := proxy.Inner{
		HTTPRequest: network.HTTPRequest{Method: r.Method, Target: r.RequestURI, Header: r.Header},
		Authority:   r.Host, Upgrade: r.Header.Get("Upgrade") != "",
	}
	if !strings.HasPrefix(r.RequestURI, "/") || r.Method == http.MethodConnect {
		inner.Method = "" // it is for a proxy, or would be in the form that the server gets
	}
	refusal, rule := s.c.Judge(inner)
	if refusal != nil {
		answer(w, r, refusal)
		return
	}
	if switchesHTTP(r.Header) {
		r.Header.Del("Upgrade")
	}
	if proxy.Change(r.Header, rule); rule != nil {
		r.Trailer = nil // no rule can be asked about what comes behind the body
	}
	if s.rewriter != nil {
		if inner.Refused = s.rewriter.Request(s.c.Host, s.c.Port, s.c.Guarded, r); inner.Refused != nil {
			refusal, _ = s.c.Judge(inner)
			answer(w, r, refusal)
			return
		}
		w = &final{w}
	}
	s.proxy.ServeHTTP(w, r)
}

// dropHops removes the headers that are about one connection. Te and Upgrade, where Connection names it,
// are left to [httputil.ReverseProxy], which asks for them anew.
func dropHops(h http.Header) {
	kept := http.Header{}
	if te := h["Te"]; te != nil {
		kept["Te"] = te
	}
	if upgrade := h["Upgrade"]; upgrade != nil && proxy.Lists(h, "Connection", "upgrade") {
		kept["Upgrade"], kept["Connection"] = upgrade, []string{"Upgrade"}
	}
	proxy.DropHops(h)
	maps.Copy(h, kept)
}

// switchesHTTP reports whether a request asks for a protocol in which there would be requests that
// nothing sees.
func switchesHTTP(h http.Header) bool {
	for name := range strings.SplitSeq(strings.Join(h.Values("Upgrade"), ","), ",") {
		name = strings.ToLower(textproto.TrimString(name))
		if strings.HasPrefix(name, "h2") || strings.HasPrefix(name, "h3") ||
			strings.HasPrefix(name, "http") || strings.HasPrefix(name, "tls") {
			return true
		}
	}
	return false
}

// answer answers for the server.
func answer(w http.ResponseWriter, r *http.Request, refusal *proxy.Refusal) {
	w.Header().Set("Content-Type", refusal.Kind)
	if refusal.Error != "" {
		w.Header().Set("X-Proxy-Error", refusal.Error)
	}
	w.WriteHeader(refusal.Status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, refusal.Body)
	}
}

// rewrite makes the request for the server: as it came, but for headers that are about one connection.
func (s *session) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https",
		net.JoinHostPort(s.c.Host.String(), strconv.Itoa(int(s.c.Port))), s.authority
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	r.Out.Trailer = r.In.Trailer // it is filled when the body has ended
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values := r.In.Header.Values(name); len(values) > 0 {
			r.Out.Header[name] = values
		}
	}
}

// A responseError is a response of the server that its Rewriter refused.
type responseError struct{ err error }

// Error returns the reason.
func (e *responseError) Error() string { return e.err.Error() }

// Unwrap returns the error of the Rewriter.
func (e *responseError) Unwrap() error { return e.err }

// modify changes a response.
func (s *session) modify(r *http.Response) error {
	if s.rewriter == nil {
		return nil
	}
	if err := s.rewriter.Response(s.c.Host, s.c.Port, s.c.Guarded, r); err != nil {
		return &responseError{err}
	}
	return nil
}

// final leaves out responses before the last one, which [session.modify] does not see.
type final struct{ http.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (f *final) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		f.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for [http.ResponseController].
func (f *final) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// failed answers where the server did not.
func (s *session) failed(w http.ResponseWriter, r *http.Request, err error) {
	var misuse proxy.Misuse
	if errors.As(err, &misuse) { // in the body
		refusal, _ := s.c.Judge(proxy.Inner{HTTPRequest: network.HTTPRequest{Method: r.Method},
			Authority: s.authority, Refused: misuse})
		answer(w, r, refusal)
		return
	}
	body := "cannot reach " + s.authority + ": " + wordsOf(err)
	if refused := new(responseError); errors.As(err, &refused) {
		body = refused.Error()
	}
	answer(w, r, &proxy.Refusal{Status: http.StatusBadGateway, Kind: "text/plain", Body: body + "\n"})
}

// wordsOf is an error of a connection to a server, without anything that the server has sent: that may be the
// value of a credential.
func wordsOf(err error) string {
	var (
		host     x509.HostnameError
		unknown  x509.UnknownAuthorityError
		invalid  x509.CertificateInvalidError
		verify   *tls.CertificateVerificationError
		noTLS    tls.RecordHeaderError
		alert    tls.AlertError
		op       *net.OpError
		errno    syscall.Errno
		deadline interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &host):
		return "its certificate is valid for other names"
	case errors.As(err, &unknown):
		return "certificate signed by unknown authority; name the file of that authority in network.mitm.extra_ca"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired, or is not yet valid"
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "its certificate is not valid"
	case errors.As(err, &noTLS):
		return "it does not speak TLS"
	case errors.As(err, &alert):
		return "it rejects TLS; if it requires a client certificate, add it to network.mitm.exclude"
	case errors.As(err, &deadline) && deadline.Timeout():
		return "no answer came in time"
	case errors.As(err, &op) && errors.As(op.Err, &errno):
		return errno.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "it closed the connection"
	}
	return "its response is malformed"
}
