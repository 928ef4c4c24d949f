// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package netproxy

import (
	"bufio"
	"errors"
	"strconv"
	"strings"
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

// A field is one header. Its name is as it arrived.
type field struct{ name, value string }

// A head is the start line of a message, and its headers.
type head struct {
	start  string
	fields []field
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
	h := &head{start: start}
	for {
		line, err := readLine(r, &left)
		if err != nil {
			return nil, err
		}
		if line == "" {
			return h, nil
		}
		if len(h.fields) == maxFields {
			return nil, &headError{431, "more than 128 headers"}
		}
		f, err := parseField(line)
		if err != nil {
			return nil, err
		}
		h.fields = append(h.fields, f)
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
	if !ok {
		return "", malformed("a line does not end with CR LF")
	}
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return "", malformed("control byte in the head")
		}
	}
	return text, nil
}

func parseField(line string) (field, error) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || !isToken(name) {
		return field{}, malformed("malformed header")
	}
	return field{name, strings.Trim(value, " \t")}, nil
}

// isToken reports whether s is a token of HTTP.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isAlphanumeric(c) && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// values returns the values of the headers of a name.
func (h *head) values(name string) []string {
	var list []string
	for _, f := range h.fields {
		if strings.EqualFold(f.name, name) {
			list = append(list, f.value)
		}
	}
	return list
}

// names reports whether a header that is a list has the element.
func (h *head) names(name, element string) bool {
	for _, value := range h.values(name) {
		for one := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.Trim(one, " \t"), element) {
				return true
			}
		}
	}
	return false
}

// version splits off "HTTP/1.0" or "HTTP/1.1"; minor is its last digit.
func version(text string) (minor int, ok bool) {
	switch text {
	case "HTTP/1.0":
		return 0, true
	case "HTTP/1.1":
		return 1, true
	}
	return 0, false
}

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
	return parseRequest(h)
}

func parseRequest(h *head) (*request, error) {
	parts := strings.Split(h.start, " ")
	if len(parts) != 3 || !isToken(parts[0]) || parts[1] == "" || strings.Contains(parts[1], "\t") {
		return nil, malformed("malformed request line")
	}
	q := &request{head: h, method: parts[0], target: parts[1]}
	var ok bool
	if q.minor, ok = version(parts[2]); !ok {
		return nil, malformed("the version is not HTTP/1.0 or HTTP/1.1")
	}
	hosts := h.values("Host")
	if len(hosts) > 1 {
		return nil, malformed("more than one Host header")
	}
	if q.hasHost = len(hosts) == 1; q.hasHost {
		q.host = hosts[0]
	}
	var err error
	if q.body, err = parseFraming(h, q.minor); err != nil {
		return nil, err
	}
	if q.body.kind == untilClose {
		q.body = framing{kind: emptyBody}
	}
	q.keep = q.minor == 1 && !h.names("Connection", "close") && !h.names("Proxy-Connection", "close")
	return q, nil
}

// A response is the head of a response.
type response struct {
	*head
	status int
	reason string
	// Declared is what the headers say, and body what follows, which is nothing after some.
	declared, body framing
}

// readResponse reads a head that answers a request of the method.
func readResponse(r *bufio.Reader, method string) (*response, error) {
	h, err := readHead(r)
	if err != nil {
		return nil, err
	}
	return parseResponse(h, method)
}

func parseResponse(h *head, method string) (*response, error) {
	first, rest, _ := strings.Cut(h.start, " ")
	code, reason, _ := strings.Cut(rest, " ")
	minor, ok := version(first)
	status, err := strconv.ParseUint(code, 10, 16)
	if !ok || err != nil || len(code) != 3 || status < 100 {
		return nil, malformed("malformed status line")
	}
	p := &response{head: h, status: int(status), reason: reason}
	if p.declared, err = parseFraming(h, minor); err != nil {
		return nil, err
	}
	p.body = p.declared
	if method == "HEAD" || status < 200 || status == 204 || status == 304 {
		p.body = framing{kind: emptyBody}
	}
	return p, nil
}
