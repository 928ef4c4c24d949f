// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"fmt"
	"net/textproto"
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

// refusal is the answer to a request that was not allowed: JSON, or a sentence.
func (a *access) refusal(inWords bool) *Refusal {
	texts := textsOf(a.decision.Reason)
	switch {
	case a.decision.Ruling == network.Reject:
		return sentence(400, "the request is refused: "+string(a.decision.Reason))
	case inWords && a.decision.Reason == network.DNSFailed:
		return sentence(502, a.unresolved())
	case inWords:
		return &Refusal{403, "text/plain", texts.header, texts.message}
	}
	return &Refusal{403, "application/json", texts.header, a.refusedBody()}
}

// unresolved says why a name has no address.
func (a *access) unresolved() string {
	return "cannot resolve " + a.req.Host.String() + ": " + a.failure
}

// refusedBody is the body of the answer to a request that was not allowed, as JSON.
func (a *access) refusedBody() string {
	texts := textsOf(a.decision.Reason)
	body := refusedBody{
		Status: "blocked", Host: a.req.Host.String(), Reason: a.decision.Reason, Decision: "deny",
		Source: a.decision.Source, Protocol: a.req.Protocol.String(), Port: a.req.Port,
		Message: texts.message, CallID: a.s.command.CallID, Hint: a.decision.Hint(a.req),
	}
	if a.decision.Reason == network.DNSFailed {
		body.Message = a.unresolved()
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

// sentence is an answer of one line.
func sentence(status int, line string) *Refusal {
	return &Refusal{status, "text/plain", "", line + "\n"}
}

// bytes is the answer as it is sent, to HEAD without its body. Last closes the connection behind it.
func (r *Refusal) bytes(isHead, last bool) []byte {
	reason, connection, body := "", "", r.Body
	if r.Error != "" {
		reason = "x-proxy-error: " + r.Error + "\r\n"
	}
	if last {
		connection = "connection: close\r\n"
	}
	if isHead {
		body = ""
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\ncontent-type: %s\r\n%s%scontent-length: %d\r\n\r\n%s",
		r.Status, statusTexts[r.Status], r.Kind, reason, connection, len(r.Body), body)
}

// hops are the headers that are about one connection, or about a proxy.
var hops = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Proxy-Authenticate",
	"Proxy-Authorization",
}

// DropHops removes the headers that are about one connection, and those that Connection names, so that
// what is judged and set is what the other side gets.
func DropHops(h map[string][]string) {
	for _, value := range h["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			textproto.MIMEHeader(h).Del(strings.Trim(name, " \t"))
		}
	}
	for _, name := range hops {
		delete(h, name)
	}
}

// Change changes the headers of a request as a rule says; nil for none.
func Change(h map[string][]string, rule *network.RequestRule) {
	if rule == nil {
		return
	}
	for name := range h {
		if rule.Drops(name) {
			delete(h, name)
		}
	}
	for _, set := range rule.Set {
		textproto.MIMEHeader(h).Add(set.Name, set.Value)
	}
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
