// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport/network"
)

// A target is where a request goes, with what is done to it there.
type target struct {
	set      *Credentials
	host     string
	entries  []*entry // that it may get
	foreign  []*entry // that it may not
	refusing []pair   // of foreign
}

// targetOf sorts the credentials by whether a host may get them.
func (s *Credentials) targetOf(host network.Host, port uint16) *target {
	t := &target{set: s, host: net.JoinHostPort(host.String(), strconv.Itoa(int(port)))}
	for _, e := range s.entries {
		if e.isFor(host, port) {
			t.entries = append(t.entries, e)
			continue
		}
		t.foreign = append(t.foreign, e)
		t.refusing = append(t.refusing, s.misuse[e].pairs...)
	}
	return t
}

// table returns what is replaced in one place of a request, and refused there.
func (t *target) table(in place) *table {
	pairs := append([]pair(nil), t.refusing...)
	for _, e := range t.entries {
		if e.where&in != 0 {
			pairs = append(pairs, t.set.outward[e].pairs...)
		}
	}
	return newTable(pairs)
}

// misused is the error for a credential in a request that may not have it.
func (t *target) misused(e *entry) error { return &CredentialMisuseError{Name: e.name, Host: t.host} }

// Request replaces dummies in a request to a host by the real values, where the host may get them. A
// dummy of another credential is a [*MisuseError], which is also what reading the body returns if the
// dummy is there. Requests to guarded hosts, whose responses are searched, ask for whole responses without
// compression, because in others a real value could not be found. The body is replaced while it is read; one
// that is compressed is left as it is.
func (s *Credentials) Request(host network.Host, port uint16, guarded bool, r *http.Request) error {
	if s == nil {
		return nil
	}
	if !s.enter() {
		return errClosed
	}
	defer s.mu.RUnlock()
	t := s.targetOf(host, port)
	if err := t.url(r.URL); err != nil {
		return err
	}
	if err := t.headers(r.Header); err != nil {
		return err
	}
	if guarded || len(t.entries) > 0 {
		r.Header.Set("Accept-Encoding", "identity")
		for _, name := range []string{"Range", "Request-Range", "If-Range", "Sec-Websocket-Extensions"} {
			r.Header.Del(name)
		}
	}
	encoding := r.Header.Get("Content-Encoding")
	if r.Body == nil || r.ContentLength == 0 || encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil
	}
	if body := t.table(inBody); len(body.pairs) > 0 {
		in := newStream(s, r.Body, body)
		in.refused = t.misused
		r.Body, r.GetBody = in, nil
	}
	return nil
}

// url replaces in the query. The path is the same for all, and only looked at.
func (t *target) url(u *url.URL) error {
	refusing := newTable(t.refusing)
	for _, text := range []string{u.Path, u.RawPath} {
		if _, found := refusing.text(text); found != nil {
			return t.misused(found)
		}
	}
	query, found := t.table(inQuery).text(u.RawQuery)
	if found != nil {
		return t.misused(found)
	}
	u.RawQuery = query
	return nil
}

// headers replaces in headers.
func (t *target) headers(h http.Header) error {
	all, bearer, basic := t.table(inHeader), t.table(inHeader|inBearer), t.table(inBasic)
	for name, values := range h {
		for i, v := range values {
			table := all
			scheme, rest, _ := strings.Cut(v, " ")
			if name == "Authorization" && strings.EqualFold(scheme, "Bearer") {
				table = bearer
			}
			text, found := table.text(v)
			if name == "Authorization" && strings.EqualFold(scheme, "Basic") && found == nil {
				text, found = inside(text, rest, basic)
			}
			if found != nil {
				return t.misused(found)
			}
			values[i] = text
		}
	}
	return nil
}

// encodings are those in which clients write a user and a password.
var encodings = []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding,
	base64.RawURLEncoding}

// inside replaces in the user and password of the header "Basic REST". What cannot be decoded stays.
func inside(header, rest string, t *table) (string, *entry) {
	rest = strings.TrimSpace(rest)
	for _, enc := range encodings {
		p, err := enc.DecodeString(rest)
		if err != nil {
			continue
		}
		_, found := t.replace(p, true)
		out := enc.EncodeToString(p)
		clear(p)
		if out == rest {
			return header, found
		}
		return "Basic " + out, found
	}
	return header, nil
}

// Plain returns a [*MisuseError] if a value of a request over plain HTTP has a dummy: its target, or
// a header. Host is for people.
func (s *Credentials) Plain(host, value string) error {
	if s == nil {
		return nil
	}
	if !s.enter() {
		return errClosed
	}
	defer s.mu.RUnlock()
	t := s.nowhere(host)
	refusing := newTable(t.refusing)
	_, found := refusing.text(value)
	if scheme, rest, _ := strings.Cut(value, " "); found == nil && strings.EqualFold(scheme, "Basic") {
		_, found = inside(value, rest, refusing)
	}
	if found != nil {
		return t.plain(found)
	}
	return nil
}

// PlainBody returns a body of a request over plain HTTP. Reading it fails with a [*MisuseError] where
// it has a dummy.
func (s *Credentials) PlainBody(host string, body io.Reader) io.Reader {
	if s == nil {
		return body
	}
	t := s.nowhere(host)
	in := newStream(s, io.NopCloser(body), newTable(t.refusing))
	in.refused = t.plain
	return in
}

// nowhere is a target that may get no credential.
func (s *Credentials) nowhere(host string) *target {
	t := &target{set: s, host: host, foreign: s.entries}
	for _, e := range s.entries {
		t.refusing = append(t.refusing, s.misuse[e].pairs...)
	}
	return t
}

func (t *target) plain(e *entry) error {
	return &CredentialMisuseError{Name: e.name, Host: t.host, Plain: true}
}
