// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package netproxy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/network"
)

// statusTexts are the reasons of the answers that this package gives itself.
var statusTexts = map[int]string{
	400: "Bad Request", 403: "Forbidden", 431: "Request Header Fields Too Large", 502: "Bad Gateway",
}

// A blocked says how a reason is told: by the value of x-proxy-error, and by a sentence. Both are
// those that clients of the peer know.
type blocked struct{ header, message string }

var blockedTexts = map[network.Reason]blocked{
	network.NotAllowed:       {"blocked-by-allowlist", "Domain not in allowlist."},
	network.NotAllowedLocal:  {"blocked-by-allowlist", "Sandbox policy blocks local/private network addresses."},
	network.ApprovalTimeout:  {"blocked-by-allowlist", "Domain not in allowlist."},
	network.TooManyPending:   {"blocked-by-allowlist", "Domain not in allowlist."},
	network.Denied:           {"blocked-by-denylist", "Domain denied by the sandbox policy."},
	network.MethodNotAllowed: {"blocked-by-method-policy", "Method not allowed in limited mode."},
	network.MITMRequired:     {"blocked-by-mitm-required", "MITM required for limited HTTPS."},
	network.MITMHookDenied:   {"blocked-by-mitm-hook", "HTTPS request denied by MITM hook policy."},
	network.CredentialMisuse: {"blocked-by-policy", "A credential was sent where it does not belong."},
	network.ProxyDisabled:    {"blocked-by-policy", "network proxy is disabled"},
}

// textsOf returns how a reason is told.
func textsOf(r network.Reason) blocked {
	if b, ok := blockedTexts[r]; ok {
		return b
	}
	return blocked{"blocked-by-policy", "Request blocked by network policy."}
}

// refusedBody is the body of a refusal. The first eight members are those that clients of the
// peer know.
type refusedBody struct {
	Status   string         `json:"status"`
	Host     string         `json:"host"`
	Reason   network.Reason `json:"reason"`
	Decision string         `json:"decision"`
	Source   network.Source `json:"source"`
	Protocol string         `json:"protocol"`
	Port     uint16         `json:"port"`
	Message  string         `json:"message"`

	CallID string `json:"call_id,omitempty"`
	Rule   string `json:"rule,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// refusal is the answer to a request that was not allowed: JSON for plain HTTP and for those that
// ask for it, a sentence otherwise.
func (a *access) refusal(q *request, c *Command) []byte {
	if a.decision.Ruling == network.Reject {
		return q.plainAnswer(400, "the request is refused: "+string(a.decision.Reason))
	}
	texts := textsOf(a.decision.Reason)
	headers := "x-proxy-error: " + texts.header + "\r\n"
	if q.method == "CONNECT" && !q.names("Accept", "application/json") {
		return answerBytes(403, "text/plain", headers+q.closing(), texts.message, true)
	}
	return answerBytes(403, "application/json", headers+q.closing(), a.refusedBody(c), q.method != "HEAD")
}

// refusedBody is the body of the answer to a request that was not allowed, as JSON.
func (a *access) refusedBody(c *Command) string {
	texts := textsOf(a.decision.Reason)
	body := refusedBody{
		Status: "blocked", Host: a.req.Host.String(), Reason: a.decision.Reason, Decision: "deny",
		Source: a.decision.Source, Protocol: a.req.Protocol.String(), Port: a.req.Port,
		Message: texts.message, CallID: c.CallID, Hint: a.decision.Hint(a.req),
	}
	if a.decision.Ruling == network.Ask {
		body.Decision = "ask"
	}
	if a.decision.Entry != nil {
		body.Rule = a.decision.Entry.Pattern
	}
	text, err := json.Marshal(body)
	if err != nil {
		return texts.message
	}
	return string(text)
}

// unreachable is the answer when no vetted address could be connected to.
func (a *access) unreachable(q *request, err error) []byte {
	return q.plainAnswer(502, "cannot connect to "+a.host()+": "+err.Error())
}

// plainAnswer is an answer of one line.
func (q *request) plainAnswer(status int, line string) []byte {
	return answerBytes(status, "text/plain", q.closing(), line+"\n", q.method != "HEAD")
}

// lastAnswer is an answer of one line behind which the connection is closed.
func lastAnswer(status int, line string) []byte {
	return answerBytes(status, "text/plain", closing, line+"\n", true)
}

// answerBytes is an answer of ours. The headers are lines that end with CR LF.
func answerBytes(status int, kind, headers, body string, withBody bool) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\ncontent-type: %s\r\n%scontent-length: %d\r\n\r\n",
		status, statusTexts[status], kind, headers, len(body))
	if withBody {
		b.WriteString(body)
	}
	return []byte(b.String())
}

// dropped are the headers that are about one connection, or about a proxy. Host and those about
// the length are made anew.
var dropped = map[string]bool{
	"connection": true, "proxy-connection": true, "keep-alive": true, "te": true, "trailer": true,
	"transfer-encoding": true, "upgrade": true, "proxy-authenticate": true, "proxy-authorization": true,
	"host": true, "content-length": true,
}

// dropHops removes the headers that are about one connection, so that what is judged and set is what the other
// side gets.
func (h *head) dropHops() {
	var named []string
	for _, value := range h.values("Connection") {
		named = append(named, strings.Split(value, ",")...)
	}
	h.fields = slices.DeleteFunc(h.fields, func(f field) bool {
		return dropped[strings.ToLower(f.name)] || slices.ContainsFunc(named, func(n string) bool { return strings.EqualFold(strings.Trim(n, " \t"), f.name) })
	})
}

// forwarded appends the headers that go on to the other side.
func (h *head) forwarded(b *strings.Builder) {
	for _, f := range h.fields {
		b.WriteString(f.name + ": " + f.value + "\r\n")
	}
}

// rebuild is the head of the request for the server. More is a header line, or empty.
func (q *request) rebuild(target string, r network.Request, more string, websocket bool) []byte {
	var b strings.Builder
	b.WriteString(q.method + " " + target + " HTTP/1.1\r\nHost: " + authority(r) + "\r\n" + more)
	q.dropHops()
	q.forwarded(&b)
	switch q.body.kind {
	case chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case sized:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", q.body.length)
	}
	if websocket {
		b.WriteString("Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	} else {
		b.WriteString("Connection: close\r\n\r\n")
	}
	return []byte(b.String())
}

// authority is the normalized host of a request, with its port where that is not the usual one.
func authority(r network.Request) string {
	text := r.Host.String()
	if addr, ok := r.Host.Addr(); ok && addr.Is6() {
		text = "[" + text + "]"
	}
	if r.Port == httpPort {
		return text
	}
	return fmt.Sprintf("%s:%d", text, r.Port)
}

// rebuild is the head of the response for the client. The framing is that of its body.
func (p *response) rebuild(f framing, connection string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", p.status, p.reason)
	p.dropHops()
	p.forwarded(&b)
	switch f.kind {
	case chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case sized:
		fmt.Fprintf(&b, "Content-Length: %d\r\n", f.length)
	}
	b.WriteString(connection + "\r\n")
	return []byte(b.String())
}
