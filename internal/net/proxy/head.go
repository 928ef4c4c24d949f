// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"maps"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Bounds of an HTTP head.
const (
	maxHead   = 64 << 10 // bytes
	maxFields = 128
)

// A headError reports an HTTP head that is refused. Nothing of it was acted upon.
type headError struct {
	status int // of the answer
	reason string
}

// Error returns the reason.
func (e *headError) Error() string { return e.reason }

func malformed(reason string) error { return &headError{400, reason} }

// A head is the start line of a message, and its headers by their canonical names.
type head struct {
	start  string
	header textproto.MIMEHeader
}

// readHead reads up to the empty line, no byte further. Every line ends with CR LF; there is no
// other control byte than tabs in values, no folded line and no blank before a colon, as readers
// differ about all of these. The error is a *headError or that of r.
func readHead(r *bufio.Reader) (*head, error) {
	left := maxHead
	start, err := readLine(r, &left)
	if err != nil {
		return nil, err
	}
	h, err := readHeader(r, &left)
	return &head{start, h}, err
}

// readHeader reads headers, or trailers, up to the empty line, and takes their bytes from left.
func readHeader(r *bufio.Reader, left *int) (textproto.MIMEHeader, error) {
	h := textproto.MIMEHeader{}
	for n := 0; ; n++ {
		line, err := readLine(r, left)
		if err != nil || line == "" {
			return h, err
		}
		name, value, ok := strings.Cut(line, ":")
		switch {
		case n == maxFields:
			return nil, &headError{431, "more than 128 headers"}
		case !ok || !httpguts.ValidHeaderFieldName(name):
			return nil, malformed("malformed header")
		}
		h.Add(name, strings.Trim(value, " \t"))
	}
}

// readLine returns a line without its CR LF, and takes its bytes from left.
func readLine(r *bufio.Reader, left *int) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if *left -= len(part); *left < 0 {
			return "", &headError{431, "the head is longer than allowed"}
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return "", err
		}
	}
	text, ok := strings.CutSuffix(string(line), "\r\n")
	switch {
	case !ok:
		return "", malformed("a line does not end with CR LF")
	case strings.ContainsFunc(text, isControl):
		return "", malformed("control byte in the head")
	}
	return text, nil
}

// isControl reports whether a character may not be in a head.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// bytes is the head as it is sent, with headers in the order of their names.
func (h *head) bytes() []byte {
	var b bytes.Buffer
	b.WriteString(h.start + "\r\n")
	for _, name := range slices.Sorted(maps.Keys(h.header)) {
		for _, value := range h.header[name] {
			b.WriteString(name + ": " + value + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// Lists reports whether a header that is a list has the element.
func Lists(h map[string][]string, name, element string) bool {
	return httpguts.HeaderValuesContainsToken(h[name], element)
}

// versions are those of HTTP that are read, by their last digit.
var versions = []string{"HTTP/1.0", "HTTP/1.1"}

// A request is the head of a request, understood as far as a proxy needs.
type request struct {
	*head
	method, target string
	minor          int    // of the version
	host           string // the header Host
	hasHost        bool
	body           framing
	keep           bool // the client wants to use the connection again
}

// readRequest reads a head. The error is a *headError or that of r.
func readRequest(r *bufio.Reader) (*request, error) {
	h, err := readHead(r)
	if err != nil {
		return nil, err
	}
	parts := strings.Split(h.start, " ")
	if len(parts) != 3 || !httpguts.ValidHeaderFieldName(parts[0]) || parts[1] == "" ||
		strings.Contains(parts[1], "\t") {
		return nil, malformed("malformed request line")
	}
	q := &request{head: h, method: parts[0], target: parts[1]}
	if q.minor = slices.Index(versions, parts[2]); q.minor < 0 {
		return nil, malformed("the version is not HTTP/1.0 or HTTP/1.1")
	}
	hosts := h.header["Host"]
	if len(hosts) > 1 {
		return nil, malformed("more than one Host header")
	}
	if q.hasHost = len(hosts) == 1; q.hasHost {
		q.host = hosts[0]
		h.header.Del("Host") // it is made anew
	}
	if q.body, err = parseFraming(h.header, q.minor); err != nil {
		return nil, err
	}
	q.keep = q.minor == 1 && !Lists(h.header, "Connection", "close") &&
		!Lists(h.header, "Proxy-Connection", "close")
	return q, nil
}

// A response is the head of a response.
type response struct {
	*head
	status int
	reason string
	body   framing // as the headers say
}

// readResponse reads a head. The error is a *headError or that of r.
func readResponse(r *bufio.Reader) (*response, error) {
	h, err := readHead(r)
	if err != nil {
		return nil, err
	}
	version, rest, _ := strings.Cut(h.start, " ")
	code, reason, _ := strings.Cut(rest, " ")
	minor := slices.Index(versions, version)
	status, err := strconv.ParseUint(code, 10, 16)
	if minor < 0 || err != nil || len(code) != 3 || status < 100 {
		return nil, malformed("malformed status line")
	}
	p := &response{head: h, status: int(status), reason: reason}
	p.body, err = parseFraming(h.header, minor)
	return p, err
}

// hasBody reports whether a body follows, if the response is to a request of the method.
func (p *response) hasBody(method string) bool {
	return method != "HEAD" && p.status >= 200 && p.status != 204 && p.status != 304
}

// The ways in which the length of a body is known.
type bodyKind uint8

const (
	unframed bodyKind = iota // nothing follows a request, and all until the end of the connection a response
	sized
	chunked
)

// framing says where a body ends.
type framing struct {
	kind   bodyKind
	length int64 // of sized
}

// parseFraming reads Content-Length and Transfer-Encoding. Whatever two readers could understand
// differently is refused: both, one of them twice, an encoding other than chunked, a length that
// is not only digits.
func parseFraming(h textproto.MIMEHeader, minor int) (framing, error) {
	lengths, encodings := h["Content-Length"], h["Transfer-Encoding"]
	switch {
	case len(lengths)+len(encodings) > 1:
		return framing{}, malformed("more than one of Content-Length and Transfer-Encoding")
	case len(encodings) == 1:
		if minor == 0 || !strings.EqualFold(encodings[0], "chunked") {
			return framing{}, malformed("unsupported Transfer-Encoding")
		}
		return framing{kind: chunked}, nil
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 63) // digits only: no sign, no blank, no prefix
		if err != nil {
			return framing{}, malformed("malformed Content-Length")
		}
		return framing{sized, int64(n)}, nil
	}
	return framing{}, nil
}

// set has headers say it, in the place of others.
func (f framing) set(h textproto.MIMEHeader) {
	h.Del("Content-Length")
	h.Del("Transfer-Encoding")
	switch f.kind {
	case chunked:
		h.Set("Transfer-Encoding", "chunked")
	case sized:
		h.Set("Content-Length", strconv.FormatInt(f.length, 10))
	}
}
