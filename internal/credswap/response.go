// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package credswap

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sallyport-dev/sallyport/network"
)

// An EncodingError is a response that is compressed in a way that cannot be searched.
type EncodingError struct {
	Host, Encoding string
}

// Error says what to do about it.
func (e *EncodingError) Error() string {
	return fmt.Sprintf("%s compressed its response with %q although it was asked not to; a credential in it could not be found, so it is refused", e.Host, e.Encoding)
}

// Response replaces real values in a response of a host that gets credentials by their dummies: in
// headers, and while its body is read. A body with gzip is decoded; another compression is an
// [*EncodingError].
func (s *Set) Response(host network.Host, port uint16, r *http.Response) error {
	if s == nil {
		return nil
	}
	if !s.enter() {
		return errClosed
	}
	defer s.mu.RUnlock()
	if len(s.forHost(host, port)) == 0 {
		return nil
	}
	hasBody := r.Body != nil
	switch encoding := strings.ToLower(strings.Join(r.Header.Values("Content-Encoding"), ", ")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
		r.ContentLength, r.Uncompressed = -1, true
		if hasBody {
			r.Body = &unzipped{src: r.Body}
		}
	default:
		return &EncodingError{host.String(), encoding}
	}
	r.Status, _ = s.inward.text(r.Status)
	s.hide(r.Header)
	if !hasBody {
		return nil
	}
	src := r.Body
	body := newStream(s, src, s.inward)
	body.atEnd = func() {
		if !s.enter() {
			r.Trailer = nil
			return
		}
		defer s.mu.RUnlock()
		s.hide(r.Trailer)
	}
	r.Body = body
	if w, ok := src.(io.Writer); ok { // of another protocol, such as websockets
		r.Body = &upgraded{body, w}
	}
	return nil
}

// hide replaces real values in headers. Names have lost the case of letters.
func (s *Set) hide(h http.Header) {
	for name, values := range h {
		lower := bytes.ToLower([]byte(name))
		for _, e := range s.entries {
			if bytes.Contains(lower, bytes.ToLower(e.real)) {
				delete(h, name)
			}
		}
		for i, v := range values {
			values[i], _ = s.inward.text(v)
		}
	}
}

// upgraded is the body of a response behind which another protocol follows.
type upgraded struct {
	*stream
	io.Writer
}

// unzipped is a body without gzip. It reads nothing before it is read.
type unzipped struct {
	src io.ReadCloser
	z   *gzip.Reader
}

// Read implements io.Reader.
func (u *unzipped) Read(p []byte) (n int, err error) {
	if u.z == nil {
		if u.z, err = gzip.NewReader(u.src); err != nil {
			return 0, err
		}
	}
	return u.z.Read(p)
}

// Close closes what it reads from.
func (u *unzipped) Close() error { return u.src.Close() }
