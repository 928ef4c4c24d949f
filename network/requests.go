// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// maxRequestRules is the number of request rules that a policy may have.
const maxRequestRules = 256

// A RequestRule permits some of the requests to hosts. Requests to a host that a rule names pass if one of
// the rules for it matches; all others are refused. A rule opens no host: that takes an entry.
//
// To judge requests inside TLS, it is opened for these hosts in every mode, which takes
// [Config.Inspector]. Without one, TLS to them is refused, and so is all in which requests cannot be seen.
type RequestRule struct {
	Name string // for people; not empty, and of one rule only
	// Hosts are patterns, as those of entries; at least one.
	Hosts []string
	// Methods are those that match, exactly as they arrive; none means all.
	Methods []string
	// Paths match themselves and what is below them: "/a" is for "/a" and "/a/b", not for "/ab"; "/a/"
	// is not for "/a". None means all. A path that servers may read in more than one way, such as one
	// with "..", "//" or an encoded slash, matches no rule that has paths, and neither does a request with
	// a header by which some servers take another path or site, such as X-Original-URL.
	Paths []string
	// Query and Headers name values that a request must have. Every value of that name counts, and another
	// spelling of the name that some servers take for it matches nothing. A value is
	// compared exactly, but behind "pattern:" it is a pattern in which * is any text, and behind "literal:"
	// the rest is compared exactly. Names of headers are compared without case.
	Query, Headers []Pair
	// Strip names headers that the server does not get. Set sets headers, in place of what the request has.
	// Both are about all spellings that some servers take for the name: see [RequestRule.Drops].
	Strip []string
	Set   []Pair
	// Source is where the rule was said, for people. It may be empty.
	Source string
}

// A Pair is a name with a value.
type Pair struct{ Name, Value string }

// A RequestRuleError reports a rule that a policy cannot have.
type RequestRuleError struct {
	Rule   string
	Reason string // why, with the fix
}

// Error returns a text with the name of the rule quoted.
func (e *RequestRuleError) Error() string {
	return fmt.Sprintf("invalid request rule %s: %s", strconv.QuoteToASCII(e.Rule), e.Reason)
}

// An HTTPRequest is what request rules are about.
type HTTPRequest struct {
	Method string // exactly as it arrived
	Target string // path and query, exactly as they arrived
	// Header has the values of headers by their names, as they arrived. Nil means none.
	Header map[string][]string
}

// A requestRule is a RequestRule with its hosts by their labels.
type requestRule struct {
	RequestRule
	hosts index
}

// addRequestRules checks and adds rules.
func (p *Policy) addRequestRules(list []RequestRule) error {
	if len(list) > maxRequestRules {
		return fmt.Errorf("network: %d request rules, at most %d", len(list), maxRequestRules)
	}
	var bad []error
	for i := range list {
		r := requestRule{RequestRule: list[i]}
		for _, text := range r.Hosts {
			pattern, reason := parsePattern(text)
			if reason != "" {
				bad = append(bad, &EntryError{Entry: Entry{Pattern: text, Source: r.Source}, Reason: reason})
				continue
			}
			// it closes only, so it may be as wide as it likes
			r.hosts.add(&pattern, &Entry{Pattern: text, Deny: true})
		}
		reason := r.problem()
		if slices.ContainsFunc(p.rules, func(o requestRule) bool { return o.Name == r.Name }) {
			reason = "another one has the name; give it one of its own"
		}
		if reason != "" {
			bad = append(bad, &RequestRuleError{r.Name, reason})
		}
		p.rules = append(p.rules, r)
	}
	return errors.Join(bad...)
}

// problem says what is wrong with a rule beyond its hosts; empty for nothing.
func (r *RequestRule) problem() string {
	switch {
	case r.Name == "":
		return "it has no name"
	case len(r.Hosts) == 0:
		return "it names no host; add hosts"
	}
	for _, m := range r.Methods {
		if !httpguts.ValidHeaderFieldName(m) {
			return fmt.Sprintf("%q is no method; write one such as GET", m)
		}
	}
	for _, path := range r.Paths {
		if plain, ok := plainPath(path); !ok || plain != path {
			return fmt.Sprintf("%q is no path to compare with; write it from its first slash, without \"..\", \"//\", \"?\" and escapes", path)
		}
	}
	for _, q := range r.Query {
		if q.Name == "" || plainParameter(q.Name) != strings.ToLower(q.Name) ||
			strings.ContainsAny(q.Name, "&=;#%+") {
			return fmt.Sprintf("%q is no name of a parameter that servers read in one way; use letters, digits, - and _ in NAME=VALUE", q.Name)
		}
	}
	for _, h := range slices.Concat(r.Headers, r.Set, named(r.Strip)) {
		switch {
		case !httpguts.ValidHeaderFieldName(h.Name):
			return fmt.Sprintf("%q is no name of a header", h.Name)
		case ofConnection[strings.ToLower(h.Name)]:
			return fmt.Sprintf("the header %s is about the connection; leave it out", h.Name)
		case strings.ContainsFunc(h.Value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			return fmt.Sprintf("the value of the header %s has a control character; leave it out", h.Name)
		}
	}
	return ""
}

func named(names []string) (pairs []Pair) {
	for _, n := range names {
		pairs = append(pairs, Pair{Name: n})
	}
	return pairs
}

// ofConnection are headers that are not those of a request alone: each hop makes them anew.
var ofConnection = map[string]bool{
	"host": true, "connection": true, "content-length": true, "transfer-encoding": true, "upgrade": true, "te": true,
	"trailer": true, "keep-alive": true, "proxy-connection": true, "proxy-authorization": true, "expect": true,
}

// finds returns the entry of an index that is for the host and port of a request, or nil.
func (x *index) finds(q *Request) *Entry {
	if e := first(x.all, q); e != nil {
		return e
	}
	if addr, ok := q.Host.Addr(); ok {
		return x.addr(addr, q, guardNone)
	}
	return x.name(q, false)
}

// Ruled reports whether a request rule names a host, so that each request to it must match one.
func (p *Policy) Ruled(h Host, port uint16) bool {
	if p == nil {
		return false
	}
	for i := range p.rules {
		if p.rules[i].hosts.finds(&Request{Host: h, Port: port}) != nil {
			return true
		}
	}
	return false
}

// Names returns the names that allow entries spell, in no order: those for which there is no wildcard.
func (p *Policy) Names() []Host {
	if p == nil {
		return nil
	}
	return p.allow.hosts(nil)
}

// RuledNames is Names for request rules.
func (p *Policy) RuledNames() (names []Host) {
	if p != nil {
		for i := range p.rules {
			names = p.rules[i].hosts.hosts(names)
		}
	}
	return names
}

// HasRequestRules reports whether TLS may have to be opened for request rules.
func (p *Policy) HasRequestRules() bool { return p != nil && len(p.rules) > 0 }

// DecideRequest judges an HTTP request to a host that [Policy.Decide] has allowed, or a person. A host
// that no request rule names is allowed, with a nil rule; for others it is the first rule, in the order of
// [Config.Rules], that matches. The Entry of a refusal names the rules for the host.
func (p *Policy) DecideRequest(h Host, port uint16, q HTTPRequest) (Decision, *RequestRule) {
	var names []string
	if p != nil {
		for i := range p.rules {
			r := &p.rules[i]
			if r.hosts.finds(&Request{Host: h, Port: port}) == nil {
				continue
			}
			if r.matches(&q) {
				return Decision{Allow, Allowed, BaselinePolicy, nil}, &r.RequestRule
			}
			names = append(names, r.Name)
		}
	}
	if names == nil {
		return Decision{Allow, Allowed, BaselinePolicy, nil}, nil
	}
	return Decision{Deny, MITMHookDenied, BaselinePolicy,
		&Entry{Pattern: "rule " + strings.Join(names, ", "), Deny: true, Source: "network.mitm.rules"}}, nil
}

// Drops reports whether the server does not get a header of the request: the rule strips or sets it, in this
// spelling or in one that some servers take for it.
func (r *RequestRule) Drops(header string) bool {
	plain := plainHeader(header)
	is := func(name string) bool { return plainHeader(name) == plain }
	return slices.ContainsFunc(r.Strip, is) ||
		slices.ContainsFunc(r.Set, func(p Pair) bool { return is(p.Name) })
}

// overrides are headers by which some servers take another method than that of the request, and override is
// the parameter.
var overrides = []string{"x-http-method-override", "x-http-method", "x-method-override", "x-original-method",
	"x-forwarded-method"}

// placeOverrides are headers by which some servers, or proxies before them, take another path, or the host of
// another site, than those of the request.
var placeOverrides = []string{
	"x-original-url", "x-original-uri", "x-original-path", "x-rewrite-url", "x-rewrite-uri", "x-request-uri",
	"x-request-url",
	"x-http-path-override", "x-http-url-override", "x-forwarded-prefix", "x-forwarded-path",
	"x-forwarded-uri", "x-forwarded-url",
	"x-replaced-path", "x-replace-path", "x-override-url", "x-path", "x-uri", "x-url", "x-path-info",
	"x-script-name", "x-envoy-original-path",
	"path-info", "script-name", "request-uri", "x-waws-unencoded-url", "x-unencoded-url",
	"x-forwarded-host", "x-forwarded-server", "x-host", "x-original-host", "x-http-host-override",
	"x-host-override", "forwarded",
}

// elsewhere reports whether a request, as the server gets it by the rule, may stand for another place
// than that in its target.
func (r *RequestRule) elsewhere(q *HTTPRequest) bool {
	for name := range q.Header {
		if slices.Contains(placeOverrides, plainHeader(name)) && !r.Drops(name) {
			return true
		}
	}
	return false
}

const override = "_method"

// Overrides returns the methods that a request may stand for beside its own.
func (q *HTTPRequest) Overrides() (methods []string) {
	for name, values := range q.Header {
		if slices.Contains(overrides, plainHeader(name)) {
			methods = append(methods, values...)
		}
	}
	_, query, _ := strings.Cut(q.Target, "?")
	for _, part := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(part, "=")
		if name, err := url.QueryUnescape(name); err != nil || plainParameter(name) == override {
			methods = append(methods, value)
		}
	}
	for i, m := range methods {
		methods[i] = strings.ToUpper(strings.TrimSpace(m))
	}
	return methods
}

// matches reports whether a rule permits a request.
func (r *RequestRule) matches(q *HTTPRequest) bool {
	if len(r.Methods) > 0 {
		for _, m := range append(q.Overrides(), q.Method) {
			if !slices.Contains(r.Methods, m) {
				return false
			}
		}
	}
	path, query, _ := strings.Cut(q.Target, "?")
	if len(r.Paths) > 0 {
		plain, ok := plainPath(path)
		if !ok || r.elsewhere(q) || !slices.ContainsFunc(r.Paths,
			func(of string) bool { return isBelow(plain, of) }) {
			return false
		}
	}
	for _, want := range r.Query {
		if values, ok := parameters(query, want.Name); !ok || !allMatch(values, want.Value) {
			return false
		}
	}
	for _, want := range r.Headers {
		if values, ok := q.headers(want.Name); !ok || !allMatch(values, want.Value) {
			return false
		}
	}
	return true
}

// parameters returns the values of a parameter. It is not ok for a query that servers may read in
// another way.
func parameters(query, name string) (values []string, ok bool) {
	if strings.ContainsAny(query, ";#") { // some servers split there
		return nil, false
	}
	for part := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(part, "=")
		key, err := url.QueryUnescape(key)
		if err != nil {
			return nil, false
		}
		if plainParameter(key) != plainParameter(name) {
			continue
		}
		value, err = url.QueryUnescape(value)
		if err != nil || key != name {
			return nil, false
		}
		values = append(values, value)
	}
	return values, true
}

// plainParameter is the name of a parameter as the most careless server reads it.
func plainParameter(name string) string {
	if i := strings.IndexAny(name, "[\x00"); i >= 0 {
		name = name[:i]
	}
	return strings.NewReplacer(".", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(name)))
}

// headers returns the values of a header that goes on to the server. It is not ok where servers may read
// another one.
func (q *HTTPRequest) headers(name string) (values []string, ok bool) {
	for key, all := range q.Header {
		switch {
		case strings.EqualFold(key, "Connection") &&
			slices.ContainsFunc(strings.Split(strings.Join(all, ","), ","),
				func(word string) bool { return plainHeader(word) == plainHeader(name) }):
			return nil, false // it is for this connection alone
		case plainHeader(key) != plainHeader(name):
		case !strings.EqualFold(key, name):
			return nil, false
		default:
			values = append(values, all...)
		}
	}
	return values, true
}

// plainHeader is the name of a header as servers read it that make a variable of it: whatever is no letter or
// digit is the same there, and at the ends it is nothing.
func plainHeader(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, name)
	return strings.Trim(plain, "-")
}

// likeOthers are characters that some servers take for a dot, a separator or an escape after they were
// decoded: those of the full width, and others of the same look.
const likeOthers = "\u2024\u2025\u2026\u2044\u2215\u2216\u29f5\u29f8\ufe52\ufe68\uff0e\uff0f\uff3c\uff05\uff1b"

// plainPath returns a path without escapes. It is not ok for one that servers may read in another way: what
// has empty segments or those of dots, parameters behind a semicolon, backslashes, characters that a
// path does not have, or an escape that stands for one of these, for a slash or for a percent sign.
func plainPath(path string) (plain string, ok bool) {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/-_.~!$&'()*+,=:@%"
	if !strings.HasPrefix(path, "/") || strings.ContainsFunc(path,
		func(r rune) bool { return !strings.ContainsRune(letters, r) }) {
		return "", false
	}
	segments := strings.Split(path[1:], "/")
	for i, s := range segments {
		text, err := url.PathUnescape(s)
		if err != nil || !utf8.ValidString(text) || strings.Trim(text, ". ") == "" &&
			(text != "" || i < len(segments)-1) {
			return "", false
		}
		if strings.ContainsFunc(text, func(r rune) bool {
			return r < ' ' || r == 0x7f ||
				strings.ContainsRune("/\\%;"+likeOthers, r)
		}) {
			return "", false
		}
		segments[i] = text
	}
	return "/" + strings.Join(segments, "/"), true
}

// isBelow reports whether a path is that of a rule, or below it.
func isBelow(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || strings.HasSuffix(of, "/") || rest[0] == '/')
}

// allMatch reports whether there are values, and each is as a rule wants it.
func allMatch(values []string, want string) bool {
	exact, isExact := strings.CutPrefix(want, "literal:")
	glob, isGlob := strings.CutPrefix(want, "pattern:")
	for _, v := range values {
		switch {
		case isExact && v == exact, !isExact && isGlob && matchesGlob(v, glob), !isExact &&
			!isGlob && v == want:
		default:
			return false
		}
	}
	return len(values) > 0
}

// matchesGlob reports whether a text is that of a pattern in which * is any text.
func matchesGlob(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return text == pattern
	}
	head, tail := parts[0], parts[len(parts)-1]
	if len(text) < len(head)+len(tail) || !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
		return false
	}
	text = text[len(head) : len(text)-len(tail)]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(text, part)
		if !ok {
			return false
		}
		text = after
	}
	return true
}
