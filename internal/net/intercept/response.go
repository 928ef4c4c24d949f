// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/network"
)

// A CredentialEncodingError is a response that is compressed in a way that cannot be searched.
type CredentialEncodingError struct {
	Host string
}

// Error says what to do about it. It has nothing of the response, which may have a credential in any place.
func (e *CredentialEncodingError) Error() string {
	return fmt.Sprintf("%s compressed its response although it was asked not to; a credential in it could not be found, so it is refused", e.Host)
}

// Response replaces real values in a response of a host that gets credentials, or is guarded, by their
// dummies: in headers, and while its body is read. A body with gzip is decoded; another compression is
// an [*EncodingError].
func (s *Credentials) Response(host network.Host, port uint16, guarded bool, r *http.Response) error {
	if s == nil {
		return nil
	}
	if !s.enter() {
		return errClosed
	}
	defer s.mu.RUnlock()
	if !guarded && len(s.forHost(host, port)) == 0 {
		return nil
	}
	zipped, err := isZipped(host, r.Header.Values("Content-Encoding"))
	if err != nil {
		return err
	}
	if zipped {
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
		r.ContentLength, r.Uncompressed = -1, true
	}
	r.Status, _ = s.inward.text(r.Status)
	s.hide(r.Header)
	s.hide(r.Trailer) // the names that are announced
	if r.Body == nil {
		return nil
	}
	src := r.Body
	body := s.hidden(src, zipped)
	body.atEnd = func() {
		if !s.enter() {
			r.Trailer = nil
			return
		}
		defer s.mu.RUnlock()
		s.hide(r.Trailer)
	}
	r.Body = body
	if w, ok := src.(io.Writer); ok { // of another protocol
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			body.frames = new(frames)
		}
		r.Body = &upgraded{body, w}
	}
	return nil
}

// isZipped reports whether a body has gzip; another coding is an error.
func isZipped(host network.Host, codings []string) (bool, error) {
	switch strings.ToLower(strings.Join(codings, ", ")) {
	case "", "identity":
		return false, nil
	case "gzip", "x-gzip":
		return true, nil
	}
	return false, &CredentialEncodingError{host.String()}
}

// Hide replaces real values in the reason, the headers and the body of a response over plain HTTP by
// their dummies. A body with gzip is decoded, and no header names that any more; another coding is an
// [*EncodingError].
func (s *Credentials) Hide(host network.Host, reason string, header map[string][]string,
	body io.Reader) (string, io.Reader, error) {
	if s == nil {
		return reason, body, nil
	}
	if !s.enter() {
		return "", nil, errClosed
	}
	defer s.mu.RUnlock()
	zipped, err := isZipped(host, header["Content-Encoding"])
	if err != nil {
		return "", nil, err
	}
	if zipped {
		delete(header, "Content-Encoding")
	}
	reason, _ = s.inward.text(reason)
	s.hide(header)
	return reason, s.hidden(io.NopCloser(body), zipped), nil
}

// hidden replaces real values in a body, while it is read.
func (s *Credentials) hidden(src io.ReadCloser, zipped bool) *stream {
	if zipped {
		src = &unzipped{src: src}
	}
	return newStream(s, src, s.inward)
}

// hide replaces real values in headers.
func (s *Credentials) hide(h http.Header) {
	for name, values := range h {
		if s.inName(name) {
			delete(h, name)
		}
		for i, v := range values {
			values[i], _ = s.inward.text(v)
		}
	}
}

// inName reports whether the name of a header has a real value in it. Names may have lost the case of
// letters.
func (s *Credentials) inName(name string) bool {
	if hidden, _ := s.inward.text(name); hidden != name {
		return true
	}
	lower := bytes.ToLower([]byte(name))
	return slices.ContainsFunc(s.entries,
		func(e *entry) bool { return bytes.Contains(lower, bytes.ToLower(e.real)) })
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
