// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

// errRequest is the end of a tunnel in which a request was refused.
var errRequest = errors.New("a request in the tunnel is refused")

// A screen passes on what the client sends in a tunnel as long as that is requests of HTTP/1, and judges
// each by the host that it names, as one at a proxy is: a connection for one host must not carry what is
// for another. Another protocol goes on as it is, and at once.
type screen struct {
	t        *tunnel
	f, other *flow
	r        *bufio.Reader
	begun    bool // a request was passed on
	upgraded bool // and asked for another protocol
}

// Read reads of the client, and waits as its tunnel does.
func (s *screen) Read(p []byte) (n int, err error) {
	err = s.t.wait(s.f, s.other, func() (bool, error) {
		n, err = s.f.ahead.Read(p)
		return n > 0, err
	})
	return n, err
}

// run returns nil where the rest is for the caller to pass on.
func (s *screen) run() error {
	s.r = bufio.NewReader(s)
	for {
		raw, sent, err := s.line()
		if errors.Is(err, io.EOF) {
			return nil // and so says the copy
		}
		if err != nil {
			return err
		}
		if isRequest := isRequestLine(raw); !isRequest && s.begun && !s.upgraded {
			return errRequest // neither a request nor what one has asked for
		} else if !isRequest {
			rest, _ := s.r.Peek(s.r.Buffered())
			return s.write(append(raw[sent:], rest...))
		}
		if raw, err = s.head(raw); err != nil {
			return s.refuse(nil, network.InvalidHost)
		}
		q, err := readRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return s.refuse(nil, network.InvalidHost)
		}
		if reason := s.judge(q); reason != "" {
			return s.refuse(q, reason)
		}
		if err := s.write(raw[sent:]); err != nil {
			return err
		}
		if q.hasBody() {
			if err := copyBody(writerFunc(s.write), newBody(s.r, q.body),
				q.body.kind == chunked); err != nil {
				return err
			}
		}
		s.begun, s.upgraded = true, q.method == "CONNECT" || Lists(q.header, "Connection", "upgrade")
	}
}

type writerFunc func([]byte) error

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) {
	if err := f(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *screen) write(p []byte) error {
	n, err := s.f.to.Write(p)
	s.f.count(n)
	return err
}

// line reads a line that may be the first of a request, or what is certainly none. Of a line that has
// not ended all is passed on meanwhile: a protocol that waits for an answer to it is not held up. Sent
// is how much was.
func (s *screen) line() (raw []byte, sent int, err error) {
	for long := false; ; {
		if _, err := s.r.Peek(1); err != nil {
			return nil, 0, err
		}
		p, _ := s.r.Peek(s.r.Buffered())
		end := bytes.IndexByte(p, '\n')
		if end >= 0 {
			p = p[:end+1]
		}
		raw = append(raw, p...)
		_, _ = s.r.Discard(len(p))
		text := trimBlanks(raw)
		switch {
		case end >= 0 && long && isRequestLine(raw):
			return nil, 0, errRequest
		case len(text) > 0 && (!long && !isAlphanumeric(text[0]) || bytes.ContainsFunc(text, isBinary)),
			end >= 0 && len(text) > 0:
			return raw, sent, nil
		}
		if err := s.write(raw[sent:]); err != nil {
			return nil, 0, err
		}
		switch sent = len(raw); {
		case len(text) == 0: // servers skip empty lines
			raw, sent = nil, 0
		case sent > maxHead: // its end is enough to refuse it
			const end = 64
			raw, sent, long = bytes.Clone(raw[sent-end:]), end, true
		}
	}
}

// blanks are the bytes that some servers take for a blank in the first line of a request.
const blanks = " \t\r\n\v\f\x1c\x1d\x1e\x1f\x85\xa0"

func isBlank(c byte) bool { return strings.IndexByte(blanks, c) >= 0 }

// trimBlanks returns what is behind blanks.
func trimBlanks(p []byte) []byte {
	for len(p) > 0 && isBlank(p[0]) {
		p = p[1:]
	}
	return p
}

// isBinary reports whether a character is in no line of text.
func isBinary(r rune) bool { return r < ' ' && !isBlank(byte(r)) }

// isRequestLine reports whether a server may take a line for the first of a request of HTTP/1, also for a
// malformed one.
func isRequestLine(line []byte) bool {
	end := len(line)
	for end > 0 && isBlank(line[end-1]) {
		end--
	}
	last := end
	for last > 0 && !isBlank(line[last-1]) {
		last--
	}
	return bytes.HasSuffix(line, []byte("\n")) && !bytes.ContainsFunc(line, isBinary) &&
		strings.HasPrefix(strings.ToUpper(string(line[last:end])), "HTTP/") &&
		string(trimBlanks(line[:end])) != "PRI * HTTP/2.0"
}

// head reads the rest of a head.
func (s *screen) head(raw []byte) ([]byte, error) {
	for {
		line, err := s.r.ReadSlice('\n')
		if raw = append(raw, line...); err != nil && !errors.Is(err, bufio.ErrBufferFull) ||
			len(raw) > maxHead {
			return nil, errRequest
		}
		if text := string(line); text == "\r\n" || text == "\n" {
			return raw, nil
		}
	}
}

// judge decides about a request by the hosts that it names; empty for yes.
func (s *screen) judge(q *request) network.Reason {
	a := s.t.a
	if a.shut {
		return network.MITMRequired
	}
	if !q.hasHost && q.minor == 1 && q.method != "CONNECT" {
		return network.HostMismatch
	}
	var named []string
	if q.hasHost {
		named = append(named, q.host)
	}
	switch {
	case q.method == "CONNECT":
		named = []string{q.target}
	// for a proxy, or a server that takes the host in it
	case q.target != "*" && !strings.HasPrefix(q.target, "/"):
		_, rest, _ := strings.Cut(q.target, "://")
		authority, _, bad := parseTarget("http://" + rest)
		if bad != "" {
			return bad
		}
		named = append(named, authority)
	}
	policy := a.s.policy()
	for _, text := range named {
		r := a.req
		var err error
		if r.Host, r.Port, err = network.ParseAuthority(text, a.req.Port); err != nil {
			return network.InvalidHost
		}
		if r.Host == a.req.Host && r.Port == a.req.Port {
			continue
		}
		// Behind another proxy it is that one's to say what is reached, but for what must be seen.
		if d := policy.Decide(r); q.method != "CONNECT" && d.Ruling != network.Allow && !a.leadsTo(r.Host) {
			return network.HostMismatch
		}
		if policy.Inspects(r.Host, r.Port) || policy.Inspects(r.Host, a.req.Port) ||
			a.s.viewOf(policy, r.Host, r.Port) != (policyView{}) {
			return network.HostMismatch // or what is for it would not be seen
		}
	}
	return ""
}

// leadsTo reports whether a host is that of the connection, or its address, or a local name of that.
func (a *access) leadsTo(h network.Host) bool {
	if addr, ok := h.Addr(); ok && (addr == a.resolved.Addr().Unmap() ||
		slices.Contains(a.req.Host.LocalAddrs(), addr)) {
		return true
	}
	addr, ok := a.req.Host.Addr()
	return h == a.req.Host || ok && slices.Contains(h.LocalAddrs(), addr)
}

// refuse tells that a request is not allowed; a nil one is malformed. The first one gets an answer, as
// nothing of the server is under way.
func (s *screen) refuse(q *request, reason network.Reason) error {
	a := s.t.a
	refused := access{s: a.s, req: a.req, start: a.start}
	d := network.Decision{Ruling: network.Deny, Reason: reason, Source: network.BaselinePolicy}
	if q != nil && q.hasHost {
		refused.raw = q.host
		if host, port, err := network.ParseAuthority(q.host, a.req.Port); err == nil {
			refused.req.Host, refused.req.Port = host, port
			if by := a.s.policy().Decide(refused.req); by.Ruling != network.Allow {
				d = by
			}
		}
	}
	refused.decide(d)
	if q != nil && !s.begun {
		_ = s.f.from.SetWriteDeadline(time.Now().Add(answerTime))
		q.keep = false
		_, _ = s.f.from.Write(q.bytesOf(refused.refusal(q.wantsWords())))
	}
	return errRequest
}
