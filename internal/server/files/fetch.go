// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

const (
	maxRedirects = 10
	maxHeader    = 256 << 10 // bytes of the head of an answer
	dialTime     = 30 * time.Second
	handshake    = 10 * time.Second
	idleTime     = 30 * time.Second
	idlePerHost  = 2
)

// A HTTPHeader is one line of the head of a request or an answer.
type HTTPHeader struct {
	Name, Value string
	Secret      bool // leave it out of redirects to another server; of requests only
}

// A HTTPRequest is what is sent. Make one with NewRequest.
type HTTPRequest struct {
	method string
	url    *url.URL
	host   string // the header Host; empty for that of url
	header http.Header
	secret []string // names of secret headers
	body   []byte
	stop   bool
}

// An InvalidHTTPError reports a part of a request that HTTP does not allow, or that is not supported.
// It does not contain the values of headers.
type InvalidHTTPError struct{ Reason string }

// Error returns the reason.
func (e *InvalidHTTPError) Error() string { return e.Reason }

// NewHTTPRequest returns a request without a body that follows redirects. The error is an
// *InvalidError.
func NewHTTPRequest(method, address string, headers []HTTPHeader) (*HTTPRequest, error) {
	if !isToken(method) {
		return nil, &InvalidHTTPError{"method is invalid: invalid HTTP method"}
	}
	if method == http.MethodConnect {
		return nil, &InvalidHTTPError{"method is invalid: CONNECT is not supported"}
	}
	u, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	// none, unless there is one below
	r := &HTTPRequest{method: method, url: u, header: http.Header{"User-Agent": {""}}}
	given := http.Header{}
	for _, h := range headers {
		name := http.CanonicalHeaderKey(h.Name)
		switch {
		case !isToken(h.Name):
			return nil, &InvalidHTTPError{"header name is invalid: invalid HTTP header name"}
		case !isValue(h.Value):
			return nil, &InvalidHTTPError{"header value is invalid: failed to parse header value"}
		case name == "Host":
			r.host = h.Value
		default:
			given[name] = append(given[name], strings.Trim(h.Value, " \t"))
		}
		if h.Secret {
			r.secret = append(r.secret, name)
		}
	}
	maps.Copy(r.header, given)
	return r, nil
}

// SetBody sets the body, which the request keeps.
func (r *HTTPRequest) SetBody(body []byte) { r.body = body }

// StopAtRedirects has a redirect be the answer.
func (r *HTTPRequest) StopAtRedirects() { r.stop = true }

func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	var parsing *url.Error
	switch {
	case errors.As(err, &parsing): // whose text repeats the URL, which may have a password
		return nil, &InvalidHTTPError{"url is invalid: " + parsing.Err.Error()}
	case err != nil:
		return nil, &InvalidHTTPError{"url is invalid: " + err.Error()}
	case u.Scheme == "":
		return nil, &InvalidHTTPError{"url is invalid: relative URL without a base"}
	}
	return u, checkURL(u)
}

// checkURL returns an *InvalidError for a URL that no request is sent to.
func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &InvalidHTTPError{"only supports http and https URLs, got " + u.Scheme}
	case u.Hostname() == "":
		return &InvalidHTTPError{"url is invalid: empty host"}
	}
	return nil
}

// isToken reports whether s can be a method or the name of a header.
func isToken(s string) bool {
	return httpguts.ValidHeaderFieldName(s) && len(s) <= maxHeader
}

// isValue reports whether s can be the value of a header.
func isValue(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) &&
		len(s) <= maxHeader
}

// A HTTPClient makes requests. It may be used by several goroutines. Make one with NewClient.
type HTTPClient struct{ transport *http.Transport }

// NewHTTPClient returns a client. The caller must call Close.
func NewHTTPClient() *HTTPClient {
	return &HTTPClient{&http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		TLSHandshakeTimeout:    handshake,
		IdleConnTimeout:        idleTime,
		MaxIdleConnsPerHost:    idlePerHost,
		MaxIdleConns:           2 * idlePerHost,
		MaxResponseHeaderBytes: maxHeader,
	}}
}

// Close closes connections that are kept for further requests. There must be no request left.
func (c *HTTPClient) Close() { c.transport.CloseIdleConnections() }

// A HTTPAnswer is the answer to a request.
type HTTPAnswer struct {
	Status  int
	Headers []HTTPHeader // sorted by name; names in lower case, repeated ones in their order
	// Body must be closed. Its reads block, and end with the context of Do.
	Body io.ReadCloser
}

// Do sends a request and returns the answer when its head has come. It blocks until then, or until
// ctx ends. An error says what failed, and is not about the status.
func (c *HTTPClient) Do(ctx context.Context, r *HTTPRequest) (*HTTPAnswer, error) {
	request := (&http.Request{
		Method: r.method, URL: r.url, Host: r.host, Header: r.header.Clone(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if len(r.body) > 0 {
		request.ContentLength = int64(len(r.body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.body)), nil }
		request.Body, _ = request.GetBody() // it never fails
	}
	client := http.Client{Transport: c.transport, CheckRedirect: r.redirected}
	response, err := client.Do(request)
	if err != nil {
		return nil, r.failure(ctx, err)
	}
	a := &HTTPAnswer{Status: response.StatusCode, Body: response.Body}
	for _, name := range slices.Sorted(maps.Keys(response.Header)) {
		for _, value := range response.Header[name] {
			a.Headers = append(a.Headers, HTTPHeader{Name: strings.ToLower(name), Value: value})
		}
	}
	return a, nil
}

// credentials are the headers that carry credentials by their meaning, and the one that tells a
// server where a request came from.
var credentials = []string{"Authorization", "Cookie", "Cookie2", "Proxy-Authorization",
	"Www-Authenticate", "Referer"}

// redirected decides about a redirect: next is the request that would follow the ones in via.
func (r *HTTPRequest) redirected(next *http.Request, via []*http.Request) error {
	if r.stop {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return errors.New("too many redirects")
	}
	if err := checkURL(next.URL); err != nil {
		return err
	}
	// A server that was once left may be reached again by a URL that another one made.
	for _, other := range append(via[1:len(via):len(via)], next) {
		if origin(other.URL) != origin(r.url) {
			for _, name := range slices.Concat(credentials, r.secret) {
				next.Header.Del(name)
			}
			return nil
		}
	}
	return nil
}

// origin returns the scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	switch {
	case port == "" && u.Scheme == "https":
		port = "443"
	case port == "":
		port = "80"
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// failure returns the error of a request that got no answer.
func (r *HTTPRequest) failure(ctx context.Context, err error) error {
	cause := err
	var sending *url.Error
	if errors.As(err, &sending) {
		cause = sending.Err
	}
	if ctx.Err() != nil {
		cause = context.Cause(ctx)
	}
	u := *r.url
	u.User = nil
	return fmt.Errorf("error sending request for url (%s): %w", &u, cause)
}
