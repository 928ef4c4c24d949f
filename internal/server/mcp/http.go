// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Bounds of HTTP.
const (
	maxHead   = 32 << 10         // of a request, in bytes
	headTime  = 10 * time.Second // for it
	idleTime  = time.Hour        // of a client that asks for nothing; its runs go on
	maxToken  = 4 << 10          // bytes of a token
	tokenMode = 0o600
)

// Token returns the token in a file, and makes the file with a new one if it is missing. A file that
// others can read, or that is no regular file, is an error.
func Token(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, tokenMode)
	switch {
	case err == nil:
		token := rand.Text()
		_, err = f.WriteString(token + "\n")
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(path) // a file without a token is of no use
			return "", fmt.Errorf("cannot write the token: %w", err)
		}
		return token, nil
	case !errors.Is(err, fs.ErrExist):
		return "", fmt.Errorf("cannot make the token file: %w", err)
	}
	if f, err = safefile.Open(path); err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	const others = 0o077
	if info.Mode().Perm()&others != 0 {
		return "", fmt.Errorf("the token file %s can be read by others (mode %04o); run chmod 600 on it",
			text.Word(path), info.Mode().Perm())
	}
	if safefile.IsForeign(info) {
		return "", fmt.Errorf("the token file %s belongs to another user, who has the token; use a file of your own",
			text.Word(path))
	}
	data := make([]byte, maxToken)
	n, _ := f.Read(data) // an error leaves no token
	token := strings.TrimSpace(string(data[:n]))
	if token == "" {
		return "", fmt.Errorf("the token file %s is empty; remove it to get a new token", text.Word(path))
	}
	return token, nil
}

// Listen returns a listener for an address "HOST:PORT"; port 0 is a free one. One that other machines
// reach is an error unless insecure is set.
func Listen(address string, insecure bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("invalid address %s; use HOST:PORT, such as 127.0.0.1:0", text.Word(address))
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if addr, err := netip.ParseAddr(host); !insecure && (err != nil || !addr.Unmap().IsLoopback()) {
		return nil, fmt.Errorf(
			"other machines reach %s, and could run commands here with the token in plain text; "+
				"use 127.0.0.1, or --insecure if that is intended", text.Word(address))
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	return l, nil
}

// path is where the protocol is spoken.
const path = "/mcp"

// ServeHTTP serves clients that have a token on a listener, which it closes, until ctx ends. Then it ends all
// runs. Ready is called with the URL.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener, token string,
	ready func(string) error) error {
	defer s.Close()
	h := &http.Server{Handler: s.guarded(l.Addr(), token), MaxHeaderBytes: maxHead,
		ReadHeaderTimeout: headTime}
	if err := ready("http://" + l.Addr().String() + path); err != nil {
		return errors.Join(err, l.Close())
	}
	defer context.AfterFunc(ctx, func() {
		s.stop()
		_ = h.Close()
	})()
	if err := h.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// guarded returns the handler of requests to an address, for those that have the token.
func (s *Server) guarded(address net.Addr, token string) http.Handler {
	get := func(*http.Request) *sdk.Server { return s.mcp }
	// Revisions with sessions and those without need a handler each.
	older := sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{SessionTimeout: idleTime,
		MaxRequestBodyBytes: maxMessage})
	newer := sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{Stateless: true,
		MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true})
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		switch {
		case !near(r.Header.Values("Origin")):
			http.Error(w, "requests of web pages elsewhere are not allowed", http.StatusForbidden)
		case !listens(address, r.Host):
			http.Error(w, "the header Host does not name this server", http.StatusForbidden)
		case !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "missing or invalid token; send Authorization: Bearer TOKEN",
				http.StatusUnauthorized)
		case r.URL.Path != path:
			http.NotFound(w, r)
		case r.Header.Get("Mcp-Protocol-Version") >= newRevision:
			newer.ServeHTTP(w, r)
		default:
			older.ServeHTTP(w, r)
		}
	})
}

// near reports whether the origins of a request, if it has any, are this machine.
func near(origins []string) bool {
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			return false
		}
		addr, err := netip.ParseAddr(u.Hostname())
		if u.Hostname() != "localhost" && (err != nil || !addr.Unmap().IsLoopback()) {
			return false
		}
	}
	return true
}

// listens reports whether a Host names a listener: else a page of another site may have had its name
// resolved to this machine.
func listens(address net.Addr, host string) bool {
	own, ok := address.(*net.TCPAddr)
	name, port, err := net.SplitHostPort(host)
	if !ok || err != nil || port != strconv.Itoa(own.Port) {
		return false
	}
	at := own.AddrPort().Addr().Unmap()
	asked, err := netip.ParseAddr(name)
	switch {
	case name == "localhost":
		return at.IsLoopback() || at.IsUnspecified()
	case err != nil:
		return false // a name, which others may have chosen
	case at.IsLoopback():
		return asked.Unmap().IsLoopback()
	}
	return at.IsUnspecified() || asked.Unmap() == at
}
