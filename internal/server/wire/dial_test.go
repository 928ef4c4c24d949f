// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// echo serves a WebSocket that sends everything back, for the token "secret".
func echo(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/moved":
		http.Redirect(w, r, "/", http.StatusFound)
		return
	case r.URL.Path == "/large":
	case r.Header.Get("Authorization") != "Bearer secret":
		http.Error(w, "no such token", http.StatusUnauthorized)
		return
	}
	s, err := Accept(w, r)
	if err != nil {
		return
	}
	defer s.Close()
	for {
		message, err := s.Read()
		if err != nil {
			return
		}
		if r.URL.Path == "/large" {
			message = make([]byte, MaxFrame+1)
		}
		if s.Write(message) != nil {
			return
		}
	}
}

// TestDial: connections by every kind of URL carry messages, and what refuses says so.
func TestDial(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(echo))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer secure.Close()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	local := &http.Server{Handler: http.HandlerFunc(echo)}
	defer local.Close()
	go func() { _ = local.Serve(l) }()
	ws := strings.Replace(plain.URL, "http", "ws", 1)
	roots := &tls.Config{RootCAs: x509.NewCertPool()}
	roots.RootCAs.AddCert(secure.Certificate())
	for _, test := range []struct {
		name, url, token string
		config           *tls.Config
		status           int
		want             string // in the error; empty for none
	}{
		{"ws", ws, "secret", nil, 0, ""},
		{"wss", strings.Replace(secure.URL, "http", "ws", 1), "secret", roots, 0, ""},
		{"unknown root", strings.Replace(secure.URL, "http", "ws", 1), "secret", nil, 0, "certificate"},
		{"unix", "unix://" + socket, "secret", nil, 0, ""},
		{"no token", ws, "", nil, 401, `HTTP status 401 ("no such token"); set the token`},
		{"redirect", ws + "/moved", "secret", nil, 302, "HTTP status 302"},
		{"nothing there", "unix://" + socket + "x", "secret", nil, 0, "no such file"},
		{"other scheme", "http://localhost", "", nil, 0, ErrURL.Error()},
		{"no host", "ws://", "", nil, 0, ErrURL.Error()},
		{"relative", "unix://a/b", "", nil, 0, ErrURL.Error()},
		{"no URL", "\x7f", "", nil, 0, ErrURL.Error()},
		{"password", "ws://a:hunter2@localhost", "", nil, 0, "use a token"},
		{"token of two lines", ws, "a\r\nb: c", nil, 0, "invalid header"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Dial(t.Context(), test.url, test.token, test.config)
			var status *StatusError
			if errors.As(err, &status); test.status != 0 && (status == nil || status.Status != test.status) {
				t.Errorf("%v", err)
			}
			if test.want != "" {
				if s != nil || err == nil || !strings.Contains(err.Error(), test.want) ||
					strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%v, want %s", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Write([]byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			if message, err := s.Read(); err != nil || string(message) != `{}` {
				t.Errorf("%s, %v", message, err)
			}
		})
	}
}

// TestDialEnds: a message that is too long ends the connection, and the end of a context the dial.
func TestDialEnds(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(echo))
	defer plain.Close()
	ws := strings.Replace(plain.URL, "http", "ws", 1)
	t.Run("too long", func(t *testing.T) {
		s, err := Dial(t.Context(), ws+"/large", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Write([]byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(); !errors.Is(err, ErrTooLong) {
			t.Errorf("%v", err)
		}
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Dial(ctx, ws, "secret", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
