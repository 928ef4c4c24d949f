// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/coder/websocket"
)

// maxRefusal is how much is read of the text with which a server refuses a connection, in bytes.
const maxRefusal = 1 << 10

// A StatusError reports a server that does not open a WebSocket.
type StatusError struct {
	Status int    // of HTTP, such as 401
	Text   string // what the server says; may be empty
}

// Error returns one sentence with the status and the text.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the server answers with HTTP status %d", e.Status)
	if e.Text != "" {
		text += fmt.Sprintf(" (%q)", e.Text)
	}
	if e.Status == http.StatusUnauthorized {
		text += "; set the token of the server"
	}
	return text
}

// ErrURL is the cause of errors about URLs.
var ErrURL = errors.New("use ws://HOST:PORT, wss://HOST:PORT or unix:///PATH")

// Dial connects to the server at a URL (ws, wss, or unix with an absolute path) and returns its
// Stream, which is as that of [Accept]. It blocks until there is one, or ctx ends. A token that is
// not empty is sent as a bearer token. A nil config means the roots of the system. No proxy is
// used and no redirect is followed. The error is a *StatusError when the server refuses.
func Dial(ctx context.Context, target, token string, config *tls.Config) (Stream, error) {
	address, network, err := split(target)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		return Over(ctx, token, func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, network, address) })
	}
	return dial(ctx, target, token, &http.Transport{TLSClientConfig: config})
}

// Over is [Dial] for a connection that connect makes, such as one to a unix socket. Its error is
// wrapped by that of Over.
func Over(ctx context.Context, token string,
	connect func(context.Context) (net.Conn, error)) (Stream, error) {
	return dial(ctx, "ws://localhost/", token,
		&http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return connect(ctx)
		}})
}

// dial makes a WebSocket over a connection of a transport.
func dial(ctx context.Context, target, token string, transport *http.Transport) (Stream, error) {
	transport.DisableKeepAlives = true
	s := newSocket()
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	conn, response, err := websocket.Dial(ctx, target, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse // where it leads is not where the token is for
			}},
		HTTPHeader: header, CompressionMode: websocket.CompressionDisabled, OnPingReceived: s.pong,
	})
	switch {
	case err == nil:
		return s.start(conn), nil
	case response != nil && response.StatusCode != http.StatusSwitchingProtocols:
		// what was read before an error counts
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
		err = &StatusError{Status: response.StatusCode, Text: strings.TrimSpace(string(text))}
	}
	s.end()
	var request *url.Error // around it are words of the libraries, and the URL of another scheme
	if errors.As(err, &request) {
		err = request.Err
	}
	return nil, fmt.Errorf("cannot connect: %w", err)
}

// CheckURL returns what is wrong with a URL for [Dial].
func CheckURL(target string) error {
	_, _, err := split(target)
	return err
}

// split returns the address and the network that a URL names.
func split(target string) (address, network string, err error) {
	u, err := url.Parse(target)
	switch {
	case err != nil: // its text has the URL, which may have a password
		return "", "", fmt.Errorf("invalid URL: %w", ErrURL)
	case u.User != nil:
		return "", "", errors.New("a user name or password in a URL is not supported; use a token")
	case u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path):
		return u.Path, "unix", nil
	case (u.Scheme == "ws" || u.Scheme == "wss") && u.Host != "":
		return u.Host, "tcp", nil
	}
	return "", "", fmt.Errorf("invalid URL %q: %w", target, ErrURL)
}
